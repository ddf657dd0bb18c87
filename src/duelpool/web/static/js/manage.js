// The live dashboard: when the server reports a change, the page fetches itself again and replaces its live parts.
// Without server-sent events it polls every few seconds.
import { atOnce } from "./tables.js";

const { api } = document.body.dataset;
const live = document.getElementById("live");
const EVERY = 5000, REST = 1000, SOON = 2000, TRIES = 3;
const MARKS = ".chart [tabindex]"; // of charts, which show their values while they have the focus
let last = "", busy = false, again = false, failures = 0;

function say(how, text) {
  document.documentElement.dataset.live = how;
  if (live.textContent !== text) live.textContent = text;
}

function folds(part) { // the details by name: an id, or the summary with a number, for several may have the same one
  const times = {};
  return new Map([...part.querySelectorAll("details")].map((each) => {
    const name = each.id || each.querySelector("summary")?.textContent;
    times[name] = (times[name] ?? 0) + 1;
    return [`${name} ${times[name]}`, each];
  }));
}

function swap(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (!other || other.outerHTML === part.outerHTML) continue;
    const active = part.contains(document.activeElement) ? document.activeElement : null;
    const place = active?.getAttribute("href"), sorted = active?.dataset.sort;
    const mark = [...part.querySelectorAll(MARKS)].indexOf(active);
    const open = [...folds(part)].filter(([, each]) => each.open).map(([name]) => name);
    const scrolled = [...part.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    part.replaceWith(document.adoptNode(other));
    const closed = folds(other);
    for (const name of open) closed.get(name)?.setAttribute("open", "");
    [...other.querySelectorAll(".scroll")].forEach((each, at) => { each.scrollLeft = scrolled[at] ?? 0; });
    if (mark >= 0) other.querySelectorAll(MARKS)[mark]?.focus({ preventScroll: true });
    else if (sorted) other.querySelector(`[data-sort="${sorted}"]`)?.focus();
    else if (place) [...other.querySelectorAll("a")].find((each) => each.getAttribute("href") === place)?.focus();
  }
  document.documentElement.dataset.refreshed = String(Number(document.documentElement.dataset.refreshed ?? 0) + 1);
}

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    lookAgain();
  } catch { /* the next news will bring it */ }
  await new Promise((done) => { setTimeout(done, REST); });
  busy = false;
  if (again) { again = false; refresh(); }
}

// Figures that the server is still computing are fetched a little later, even without another change.
function lookAgain() {
  if (document.querySelector("[data-again]")) setTimeout(refresh, SOON);
}

function heard(pulse) {
  if (last && pulse !== last) refresh();
  last = pulse;
}

async function poll() {
  try {
    const answer = await fetch(`${api}/pulse`, { credentials: "same-origin" });
    if (answer.ok) { heard((await answer.json()).pulse); say("polling", "Updates every few seconds"); }
    else say("off", "Not live: reload the page");
  } catch { say("off", "Not live: the server doesn't respond"); }
  setTimeout(poll, EVERY);
}

function listen() {
  if (!globalThis.EventSource) { poll(); return; }
  const source = new EventSource(`${api}/events`);
  source.addEventListener("pulse", (event) => { failures = 0; say("events", "Live"); heard(event.data); });
  source.addEventListener("error", () => {
    failures += 1;
    if (failures >= TRIES || source.readyState === EventSource.CLOSED) { source.close(); poll(); }
  });
  addEventListener("pagehide", () => source.close());
}

// A field that is refused is shown, though its group is folded.
document.addEventListener("invalid", (event) => { event.target.closest("details")?.setAttribute("open", ""); }, true);

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard?.writeText(button.dataset.copy);
  button.textContent = "Copied";
});

atOnce(swap);
// A page that answers a POST can't be fetched again.
if (document.getElementById("sure") === null) { listen(); lookAgain(); }
