// Draws a question into the elements of the server's page. Texts are set as text, never as markup; only
// Markdown arrives as HTML, which the server has sanitised.

const $ = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);

// A row of a list: paragraphs for those texts that there are.
function row(...texts) {
  const paragraphs = texts.filter(([text]) => text).map(([textContent, className]) => element("p", { textContent, className }));
  return element("li", { dir: "auto" }, ...paragraphs);
}

// What an answer rests on, folded.
function sources(shown, words) {
  if (!shown.sources?.length) return [];
  const rows = shown.sources.map((each) => row([each.title, "name"], [each.text, "cited"]));
  const summary = element("summary", { textContent: fill(words.sources, { n: rows.length }) });
  return [element("details", { className: "sources" }, summary, element("ol", {}, ...rows))];
}

export function passage(shown, words) {
  if (shown.format === "markdown") return element("div", { className: "text", dir: "auto", innerHTML: shown.html });
  if (shown.format === "image") return element("img", { className: "picture", src: shown.src, alt: shown.title || words.picture });
  if (shown.format === "results") {
    const rows = shown.results.map((each) => row([each.title, "name"], [each.text, ""], [each.shared && words.shared, "shared"]));
    return element("ol", { className: "text results" }, ...rows);
  }
  if (shown.format !== "html") return element("div", { className: "text plain", dir: "auto", textContent: shown.text });
  const frame = element("iframe", { className: "frame", title: shown.title || words.frame });
  frame.setAttribute("sandbox", "");
  frame.src = shown.src;
  return frame;
}

function drawPane(pane, shown, words) {
  const title = pane.querySelector(".title");
  title.textContent = shown.title ?? "";
  title.hidden = !shown.title;
  const body = pane.querySelector(".body");
  body.replaceChildren(passage(shown, words), ...sources(shown, words));
  body.scrollTop = 0;
}

function drawAbout(topic) {
  const about = $("about");
  const [talk, description] = [about.querySelector(".talk"), about.querySelector(".description")];
  talk.replaceChildren(...(topic.conversation ?? []).map((turn) => element("li", { dir: "auto", textContent: turn })));
  talk.hidden = !topic.conversation?.length;
  description.textContent = topic.description ?? "";
  description.hidden = !topic.description;
  about.hidden = talk.hidden && description.hidden;
  about.scrollTop = 0;
}

export function panes() {
  return [...document.querySelectorAll("#panes .pane")];
}

export function drawQuestion(question, words) {
  $("topic").textContent = question.topic.text;
  const plain = question.of === "pages" ? words["ask.pages"] : words.ask;
  $("ask").textContent = question.criterion === "overall" ? plain : fill(words["ask.criterion"], { criterion: question.criterion });
  drawAbout(question.topic);
  [question.left, question.right].filter(Boolean).forEach((shown, at) => drawPane(panes()[at], shown, words));
  for (const form of [$("answer"), $("grading")]) {
    if (!form) continue;
    form.elements.question.value = question.id;
    form.elements.attempt.value = question.attempt;
  }
  for (const button of document.querySelectorAll('button[name="outcome"]')) button.hidden = !question.outcomes.includes(button.value);
  scrollTo(0, 0);
}

// Prefetch what the next pair needs while this one is shown.
export function warm(question) {
  for (const shown of [question?.left, question?.right]) if (shown?.format === "image") new Image().src = shown.src;
}

export function drawProgress({ done, of, topic }, ahead, words) {
  const whole = topic ?? { done, of };
  const now = { done: whole.done + ahead, of: whole.of };
  $("count").textContent = of
    ? fill(words.count, { at: Math.min(done + ahead + 1, of), of })
    : topic
      ? fill(words["count.topic"], { done: now.done, of: now.of, all: done + ahead })
      : fill(words["count.open"], { done: done + ahead });
  $("bar").hidden = !now.of;
  if (now.of) Object.assign($("bar"), { max: now.of, value: Math.min(now.done, now.of) });
}
