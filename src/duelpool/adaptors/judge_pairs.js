// Shows a pair of texts and sends which is better. Texts are set as text, never as HTML.
const WORDS = { left: "Left is better", tie: "No difference", right: "Right is better" };
const KEYS = { 1: "left", 0: "tie", 2: "right" };

function render({ model, el }) {
  const make = (tag, parent, text = "") => {
    const made = document.createElement(tag);
    made.textContent = text;
    parent.append(made);
    return made;
  };
  const box = make("section", el);
  box.className = "duelpool-pair";
  box.tabIndex = 0;
  box.setAttribute("aria-label", "Which text is better?");
  const question = make("p", box);
  const texts = make("div", box);
  texts.className = "texts";
  const sides = { left: make("div", texts), right: make("div", texts) };
  const row = make("div", box);
  row.className = "answers";
  const buttons = Object.entries(WORDS).map(([outcome, words]) => {
    const button = make("button", row, words);
    button.type = "button";
    button.addEventListener("click", () => answer(outcome));
    return button;
  });
  const state = make("p", box);
  state.setAttribute("role", "status");

  function answer(outcome) {
    const pair = model.get("pair");
    if (pair.done) return;
    model.set("answer", { number: pair.number, outcome });
    model.save_changes();
  }
  function show() {
    const pair = model.get("pair");
    question.textContent = pair.question;
    sides.left.textContent = pair.left;
    sides.right.textContent = pair.right;
    texts.hidden = pair.done;
    buttons.forEach((button) => { button.disabled = pair.done; });
    state.textContent = pair.done ? `Done: ${pair.judged} judged.` : `${pair.judged} judged.`;
  }
  box.addEventListener("keydown", (event) => {
    if (KEYS[event.key]) { event.preventDefault(); answer(KEYS[event.key]); }
  });
  model.on("change:pair", show);
  show();
}

export default { render };
