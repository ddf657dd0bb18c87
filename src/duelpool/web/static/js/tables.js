// Sorts and filters at once: forms and links of tables fetch their page and replace its live parts, without a button.
// Folds of narrow tables open and close. All of it is links and forms where scripts don't run.
const PAUSE = 250;
let asked = 0, timer = 0;

// Shows an address in place; what was asked last wins.
async function show(address, swap, said) {
  asked += 1;
  const mine = asked, parts = document.querySelectorAll("[data-live]");
  parts.forEach((each) => each.setAttribute("aria-busy", "true"));
  try {
    const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" } });
    const text = await answer.text();
    if (mine !== asked) return;
    if (!answer.ok) { location.assign(address); return; }
    history.replaceState(null, "", address);
    parts.forEach((each) => each.removeAttribute("aria-busy"));
    swap(new DOMParser().parseFromString(text, "text/html"));
    const rows = document.querySelector("[data-live] .said, [data-live] .empty");
    said.textContent = rows?.textContent.trim() ?? "";
  } catch { location.assign(address); }
}

function addressOf(form) {
  const address = new URL(form.action), given = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) given.set(name, value);
  address.search = given.toString();
  return address.href;
}

export function atOnce(swap) {
  document.documentElement.classList.add("at-once");
  const said = document.createElement("p");
  said.className = "unseen";
  said.setAttribute("role", "status");
  document.getElementById("main").append(said);
  const ask = (form, pause) => {
    clearTimeout(timer);
    timer = setTimeout(() => show(addressOf(form), swap, said), pause);
  };
  document.addEventListener("input", (event) => {
    const form = event.target.closest(".asking");
    if (form && event.target.type === "search") ask(form, PAUSE);
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest(".asking");
    if (form && event.target.type !== "search") ask(form, 0);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches(".asking") || event.target.method !== "get") return;
    event.preventDefault();
    ask(event.target, 0);
  });
  document.addEventListener("click", (event) => {
    const fold = event.target.closest("[data-fold]");
    if (fold) {
      const open = fold.closest("tr").classList.toggle("open");
      fold.setAttribute("aria-expanded", String(open));
      return;
    }
    const link = event.target.closest("a[data-at-once]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const order = new URL(link.href).searchParams.get("order");
    if (link.dataset.sort) document.querySelectorAll(".asking [name=order]").forEach((each) => { each.value = order ?? ""; });
    show(link.href, swap, said);
  });
}
