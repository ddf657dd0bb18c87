// Marks the question's words where they stand. Nothing of the text is touched: the marks are ranges beside it.

const NAME = "term";
const WORD = /[\p{L}\p{M}\p{N}_]+/gu;
// In these scripts words stand without spaces between them, so a term is looked for anywhere.
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

const plain = (text) => text.toLowerCase();
const quoted = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

// Where the terms stand in a text: [from, to] pairs, in order, none over another.
export function places(text, terms) {
  const whole = new Set();
  const within = [];
  for (const term of terms) {
    if (!term) continue;
    if (UNSPACED.test(term)) within.push(term);
    else whole.add(plain(term));
  }
  const found = [];
  if (whole.size) {
    WORD.lastIndex = 0;
    for (let match; (match = WORD.exec(text)); ) {
      if (whole.has(plain(match[0]))) found.push([match.index, WORD.lastIndex]);
    }
  }
  if (!within.length) return found;
  const pattern = new RegExp(within.sort((a, b) => b.length - a.length).map(quoted).join("|"), "giu");
  for (const match of text.matchAll(pattern)) found.push([match.index, match.index + match[0].length]);
  found.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  let end = 0;
  return found.filter(([from, to]) => from >= end && ((end = to), true));
}

export function unmark() {
  globalThis.CSS?.highlights?.delete(NAME);
}

// Mark the terms in these elements, and nowhere else; returns how many places are marked.
export function mark(elements, terms) {
  unmark();
  if (!globalThis.CSS?.highlights || !terms?.length) return 0; // an old browser shows the text without marks
  const ranges = [];
  for (const element of elements) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
      for (const [startOffset, endOffset] of places(node.data, terms)) {
        ranges.push(new StaticRange({ startContainer: node, startOffset, endContainer: node, endOffset }));
      }
    }
  }
  if (ranges.length) CSS.highlights.set(NAME, new Highlight(...ranges));
  return ranges.length;
}
