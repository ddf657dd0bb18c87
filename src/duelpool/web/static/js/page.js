// The judging page: a choice shows the next pair at once, and its answer goes through the outbox.

import { mark, unmark } from "./highlight.js";
import { pressed } from "./keys.js";
import { Options } from "./options.js";
import { Outbox, keyOf } from "./outbox.js";
import { drawProgress, drawQuestion, element, fill, panes, passage, warm } from "./panes.js";
import { Seen } from "./seen.js";
import { Together } from "./together.js";

const $ = (id) => document.getElementById(id);
const base = document.body.dataset.base;
const words = JSON.parse($("words").textContent);
const root = document.documentElement;

const SETTLE = 150; // nobody has read a new pair so soon: a bounced key or a second click is not an answer
const TAPS = 300; // the second tap of a double tap comes within this time
const STAY = 8000; // what was said stays so long
const PATIENCE = 15000; // for one request
const SOON = 120000; // a lease with less left than this is running out
const ACTIVE = 60000; // whoever moved within the last minute is still looking

let work = JSON.parse($("work").textContent);
let queue = [];
let shown = null;
let last = null; // the question answered last, for undo
let held = false; // an undo is under way
let open = false; // whether the pair has stood long enough to be answered
let opening = 0;
let viewed = 0; // milliseconds in view, up to `viewedFrom`
let viewedFrom = 0;
let uses = 0; // of context
let activeAt = 0;
let expiring = ""; // the question whose lease was told to run out
const known = new Map(); // questions by key, with their texts
const ends = new Map(); // when each question's lease ends
const lasts = new Set(); // questions whose lease can't be extended any further
const answered = new Set();

async function request(path, body) {
  const options = { signal: AbortSignal.timeout(PATIENCE), headers: { Accept: "application/json" } };
  if (body) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    options.headers["Content-Type"] = "application/json";
  }
  const reply = await fetch(`${base}/${path}${location.search}`, options);
  return { status: reply.status, body: await reply.json().catch(() => ({})) };
}

let storage = null;
try {
  storage = localStorage;
} catch { /* forbidden: the outbox keeps to this tab's memory */ }
const outbox = new Outbox(`duelpool:${base}:${words.visitor}`, send, { settled, changed: drawSaved, storage });
const seen = new Seen(drawSeen);
const options = new Options(words, optionsChanged);
const together = new Together(panes);

function send(answer) {
  const have = queue.map((each) => `${each.id}:${each.attempt}`);
  return request("answer", { ...answer, have });
}

// ---- display

let quiet = 0;
function say(text) {
  $("said").textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => ($("said").textContent = ""), STAY);
}

function warn(text, label = "", act = null) {
  $("warning").hidden = !text;
  $("warning-text").textContent = text;
  Object.assign($("warning-act"), { hidden: !act, textContent: label, onclick: act });
}

function drawSaved() {
  const { length } = outbox.waiting;
  root.dataset.waiting = length;
  $("saved").textContent = !length ? (work.progress.done || last ? words.saved : "") : fill(outbox.trouble ? words.waiting : words.saving, { n: length });
  if (outbox.trouble === "offline") warn(fill(words.offline, { n: length }), words.again, () => outbox.pump());
  else if (outbox.trouble === "forgotten") warn(words.forgotten, words.again, () => outbox.pump());
  const over = root.dataset.trouble && !outbox.trouble;
  root.dataset.trouble = outbox.trouble;
  if (over) calm();
  drawProgress(work.progress, length, words);
  drawUndo();
  if (!shown) drawHold();
}

function drawUndo() {
  $("undo").querySelector("button").hidden = !(last?.id ?? work.can_undo);
}

function drawHold() {
  const offline = outbox.trouble === "offline";
  const kind = outbox.waiting.length ? (offline ? "hold.offline" : "hold.saving") : "hold.next";
  $("hold-text").textContent = fill(words[kind], { n: outbox.waiting.length });
  $("hold-more").textContent = words[`${kind}.more`] ?? "";
}

function drawSeen() {
  const missing = shown ? seen.missing : null;
  if (!$("look").hidden && !missing) settle(TAPS); // the choices come where that button was
  $("look").hidden = !missing;
  for (const button of document.querySelectorAll(".choice, .bad")) button.setAttribute("aria-disabled", String(Boolean(missing)));
  root.dataset.seen = !missing ? "all" : seen.looked ? "some" : "";
}

function drawMarks() {
  if (options.highlight && shown) mark(panes().map((pane) => pane.querySelector(".body")), shown.terms);
  else unmark();
}

// ---- notes: kept on the device until their answer is given, and after it as long as it can be undone

const NOTES = `duelpool:${base}:${words.visitor}:notes`;
let notes = {};
try {
  notes = JSON.parse(storage?.getItem(NOTES) ?? "{}");
} catch { /* what can't be read is not there */ }

function keepNotes(changed) {
  notes = Object.fromEntries(Object.entries({ ...notes, ...changed }).filter(([, text]) => text.trim()));
  try {
    if (Object.keys(notes).length) storage?.setItem(NOTES, JSON.stringify(notes));
    else storage?.removeItem(NOTES);
  } catch { /* full or forbidden: this tab's memory has to do */ }
  drawNoted();
}

function drawNoted() {
  $("note-open").toggleAttribute("data-noted", Boolean($("note-text").value.trim()));
}

// No answer counts before the page has been still for a moment.
function settle(wait = SETTLE) {
  clearTimeout(opening);
  open = false;
  root.dataset.open = "";
  if (shown) opening = setTimeout(() => ((open = true), (root.dataset.open = keyOf(shown))), wait);
}

function show(question, focus = true) {
  document.querySelectorAll(":popover-open").forEach((each) => each.hidePopover());
  const first = shown === null && !focus;
  shown = question ?? null;
  $("panes").hidden = document.querySelector(".asked").hidden = !shown;
  $("hold").hidden = Boolean(shown);
  settle();
  if (shown) {
    if (!first) drawQuestion(shown, words); // the first one is there: the server drew it
    $("note-text").value = notes[shown.id] ?? "";
    drawNoted();
    viewed = uses = 0;
    viewedFrom = performance.now();
    seen.watch(panes(), document.querySelector(".foot"));
    drawMarks();
    warm(queue[queue.indexOf(shown) + 1]);
    if (focus) $("topic").focus({ preventScroll: true });
  } else {
    drawHold();
    $("hold").focus({ preventScroll: true });
  }
  root.dataset.shown = shown ? keyOf(shown) : "";
  drawSeen();
}

const nextOf = () => queue.find((each) => !answered.has(keyOf(each)) && !outbox.has(each));

// ---- questions

function take(news) {
  work = { ...work, ...news };
  const now = performance.now();
  for (const each of news.questions ?? []) {
    const key = keyOf(each);
    if (each.left) known.set(key, each);
    if (each.expires_in != null) ends.set(key, now + each.expires_in * 1000);
  }
  queue = (news.questions ?? []).map((each) => known.get(keyOf(each))).filter(Boolean);
  if (shown && !queue.some((each) => keyOf(each) === keyOf(shown))) show(nextOf());
  else if (!shown && nextOf()) show(nextOf());
  drawSaved();
  if (!outbox.waiting.length && !shown) moveOn();
}

let asking = null;
function moveOn() {
  if (work.state !== "judging") return location.reload(); // the server has a page for every other state
  asking ??= setTimeout(look, work.questions?.length ? 0 : 1000);
}

async function look() {
  asking = null;
  const reply = await request("work").catch(() => null);
  if (reply?.status === 200) take(reply.body);
  else if (!shown) asking ??= setTimeout(look, 5000);
}

function settled(answer, { status, body }) {
  if (status === 200) return take(body);
  if (status === 409) say(words.conflict);
  else if (status === 410) say(words.gone);
  else say([words.refused, body.problem, body.reference].filter(Boolean).join(" "));
  look();
}

const nameOf = (outcome) => (seen.narrow && words[`act.${outcome}.stacked`]) || words[`act.${outcome}`];

function inView() {
  return viewed + (document.visibilityState === "visible" ? performance.now() - viewedFrom : 0);
}

function choose(outcome, grade = null) {
  if (!shown || held || !open) return;
  if (!shown.outcomes.includes(outcome)) return;
  if (seen.missing && outcome !== "cannot-judge" && outcome !== "skip") {
    say(words["look.first"]);
    return lookThere();
  }
  const { id: question, attempt } = shown;
  const answer = { question, attempt, outcome, seconds: Math.round(inView()) / 1000, context_uses: uses, highlighted: options.highlight };
  if (grade !== null) answer.grade = grade;
  if ($("note-text").value.trim()) answer.note = $("note-text").value;
  if (last) keepNotes({ [last.id]: "" });
  last = shown;
  answered.add(keyOf(shown));
  const label = grade === null ? nameOf(outcome) : shown.grades.find((each) => each.value === grade)?.label;
  outbox.add(answer);
  show(nextOf());
  say(fill(words.chosen, { choice: label }));
  drawSaved();
}

async function undo() {
  const id = last?.id ?? work.can_undo;
  if (!id || held) return say(words["no-undo"]);
  const back = outbox.takeBack(id);
  if (back) {
    answered.delete(keyOf(back));
    last = null;
    show(known.get(keyOf(back)));
    say(words["taken-back"]);
    return drawSaved();
  }
  held = true;
  await outbox.pump();
  const reply = outbox.waiting.length ? null : await request("undo", { question: id }).catch(() => null);
  held = false;
  if (reply?.status !== 200) return say([words["undo.failed"], reply?.body.problem].filter(Boolean).join(" "));
  last = null;
  shown = null; // the question that is open again comes first
  take(reply.body);
  say(words["taken-back"]);
}

// ---- actions

function lookThere() {
  seen.missing?.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

const toggle = (id) => $(id).togglePopover();

const ACTIONS = {
  undo,
  context: () => ($("sources") ? toggleSources() : document.querySelector('[popovertarget="context"]') && toggle("context")),
  together() {
    if (!$("together")) return;
    options.set({ together: !options.together });
    say(options.together ? words["together.on"] : words["together.off"]);
  },
  note: () => toggle("note"),
  help: () => toggle("guide"),
  highlight() {
    options.set({ highlight: !options.highlight });
    say(options.highlight ? words["marks.on"] : words["marks.off"]);
  },
};

// What both answers rest on, opened or folded at once.
function toggleSources() {
  const folds = panes().flatMap((pane) => [...pane.querySelectorAll(".sources")]);
  if (!folds.length) return say(words["sources.none"]);
  const opens = !folds.some((each) => each.open);
  if (opens) uses += 1;
  for (const fold of folds) {
    const body = fold.closest(".body");
    if (opens) body.dataset.at = body.scrollTop;
    fold.open = opens;
    if (!seen.narrow) body.scrollTop = opens ? fold.offsetTop - body.offsetTop : (body.dataset.at ?? body.scrollTop);
  }
  if (opens && seen.narrow) folds[0].scrollIntoView({ block: "center" });
}

function drawTogether() {
  together.on = options.together && Boolean($("together"));
  $("together")?.setAttribute("aria-pressed", String(options.together));
}

function optionsChanged() {
  drawMarks();
  drawTogether();
}

document.addEventListener("keydown", (event) => {
  activeAt = performance.now();
  const name = options.keysOn ? pressed(event) : null;
  if (!name) return;
  const grade = shown?.kind === "grade" ? shown.grades[Number(name) - 1] : null;
  const action = options.keymap.action(name);
  const open = document.querySelector(":popover-open");
  if (open && !["help", "note", "context"].includes(action)) return;
  if (grade) choose("grade", grade.value);
  else if (action in ACTIONS) ACTIONS[action]();
  else if (action) choose(action);
  else return;
  event.preventDefault();
});

for (const form of [$("answer"), $("grading"), $("undo")].filter(Boolean)) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.id === "undo") undo();
    else if (form.id === "grading") choose("grade", Number(event.submitter.value));
    else if (event.submitter) choose(event.submitter.value);
  });
}

// The second click of a double click lands on the next pair but was meant for this one.
let clicked = false;
document.addEventListener("click", (event) => {
  const again = clicked && event.detail > 1;
  clicked = Boolean(event.target.closest('button[name="outcome"], button[name="grade"], #undo button'));
  if (clicked && again) event.preventDefault();
}, true);

$("note-text").addEventListener("input", () => shown && keepNotes({ [shown.id]: $("note-text").value }));
$("note-save").addEventListener("click", () => $("note-text").value.trim() && say(words.noted));
$("look-there").addEventListener("click", lookThere);
$("sources")?.addEventListener("click", toggleSources);
$("together")?.addEventListener("click", () => ACTIONS.together());
$("panes").addEventListener("click", (event) => {
  const fold = event.target.closest("summary")?.parentElement;
  if (fold && !fold.open) uses += 1; // it opens after this
});

$("stop-form").addEventListener("submit", async (event) => {
  if (!outbox.waiting.length) return; // nothing waits: the form goes its way
  event.preventDefault();
  $("stop").hidePopover();
  await outbox.pump();
  if (!outbox.waiting.length) event.target.submit();
});

$("context").addEventListener("toggle", async (event) => {
  if (event.newState !== "open" || !shown) return;
  uses += 1;
  const { id } = shown;
  if ($("snippets").dataset.of === id) return;
  const reply = await request(`context/${encodeURIComponent(id)}`).catch(() => null);
  if (shown?.id !== id) return;
  const snippets = reply?.body.snippets ?? [];
  $("snippets").dataset.of = reply?.status === 200 ? id : "";
  $("snippets").replaceChildren(...snippets.map((each) => element("li", {}, passage(each, words))));
  if (!snippets.length) $("snippets").append(element("li", { textContent: words["context.none"] }));
});

for (const name of ["pointermove", "pointerdown", "scroll", "touchstart"]) {
  addEventListener(name, () => (activeAt = performance.now()), { passive: true, capture: true });
}

document.addEventListener("visibilitychange", () => {
  const now = performance.now();
  if (document.visibilityState === "hidden") viewed += now - viewedFrom;
  viewedFrom = now;
});

// Another tab may have answered the question shown here.
addEventListener("storage", () => {
  outbox.pump();
  drawSaved();
  if (shown && outbox.has(shown)) {
    answered.add(keyOf(shown));
    show(nextOf());
  }
});
addEventListener("online", () => outbox.pump());
addEventListener("pageshow", (event) => event.persisted && look());

// ---- leases

// Clear the warning; a lease that is still about to expire sets it again.
function calm() {
  expiring = "";
  if (!root.dataset.trouble) warn("");
}

async function keep() {
  const question = shown; // by the time of the reply another one may stand there
  if (!question) return;
  const reply = await request("extend", { question: question.id }).catch(() => null);
  if (reply?.status !== 200) return;
  ends.set(keyOf(question), performance.now() + reply.body.expires_in * 1000);
  if (reply.body.last) lasts.add(keyOf(question)); // it can't be extended any further
  if (expiring === keyOf(question)) calm();
}

setInterval(() => {
  const left = shown ? (ends.get(keyOf(shown)) ?? Infinity) - performance.now() : Infinity;
  const soon = left > 0 && left < SOON;
  const last = shown && lasts.has(keyOf(shown));
  if (soon && !last && performance.now() - activeAt < ACTIVE && document.visibilityState === "visible") keep();
  else if (soon && !root.dataset.trouble && expiring !== keyOf(shown)) {
    expiring = keyOf(shown);
    if (last) warn(words["expiring.last"]);
    else warn(words.expiring, words.keep, keep);
  } else if (!soon && expiring) calm();
}, 5000);

// ---- start

for (const each of work.questions) {
  known.set(keyOf(each), each);
  ends.set(keyOf(each), performance.now() + (each.expires_in ?? Infinity) * 1000);
}
queue = work.questions;
const asked = new Set([...queue.map((each) => each.id), work.can_undo]);
keepNotes(Object.fromEntries(Object.keys(notes).filter((id) => !asked.has(id)).map((id) => [id, ""])));
const start = nextOf();
show(start, start !== queue[0]);
drawSaved();
drawTogether();
root.dataset.ready = "yes";
outbox.pump();
