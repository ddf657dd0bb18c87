// Highlights the question's words. The text itself is not changed: highlights are ranges over it.

const NAME = "term";
const IN_WORD = /[\p{L}\p{M}\p{N}_]/u;
// These scripts write words without spaces between them, so a term matches anywhere.
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

// Lower case, letter by letter: two letters have a lower case that otherwise depends on their position.
const small = (text) => text.replaceAll("İ", "i").toLowerCase().replaceAll("ς", "σ");

// Whether the letter at this place of a lower-case text belongs to a word; most letters are ASCII, the fast case.
function inWord(text, at) {
  const code = text.codePointAt(at);
  if (code < 128) return (code > 96 && code < 123) || (code > 47 && code < 58) || code === 95;
  return code !== undefined && IN_WORD.test(String.fromCodePoint(code));
}

// Whether a word continues across this place.
function goesOn(text, at) {
  if (at === 0 || !inWord(text, at)) return false;
  const second = (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00; // of a pair that makes one letter
  return inWord(text, at - (second ? 2 : 1));
}

// Positions of the terms in a text, as whole words: ordered [from, to] pairs without overlap, longer terms first.
export function places(text, terms) {
  const lower = small(text);
  const found = [];
  for (const term of new Set(terms.map(small))) {
    if (!term) continue;
    const anywhere = UNSPACED.test(term);
    for (let at = lower.indexOf(term); at >= 0; at = lower.indexOf(term, at + 1)) {
      const end = at + term.length;
      if (anywhere || !(goesOn(lower, at) || goesOn(lower, end))) found.push([at, end]);
    }
  }
  found.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  let end = 0;
  return found.filter(([from, to]) => from >= end && ((end = to), true));
}

export function unmark() {
  globalThis.CSS?.highlights?.delete(NAME);
}

// Highlight the terms in these elements only; returns the number of highlights.
export function mark(elements, terms) {
  unmark();
  if (!globalThis.CSS?.highlights || !terms?.length) return 0; // an old browser shows the text without marks
  const marks = new Highlight();
  for (const element of elements) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
      for (const [startOffset, endOffset] of places(node.data, terms)) {
        marks.add(new StaticRange({ startContainer: node, startOffset, endContainer: node, endOffset }));
      }
    }
  }
  if (marks.size) CSS.highlights.set(NAME, marks);
  return marks.size;
}
