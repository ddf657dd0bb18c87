// Setup: refreshes the figures while the dry run is simulated, and shows that files are being uploaded.
const EVERY = 1000;
document.documentElement.classList.add("scripting");
const said = document.getElementById("said");

async function follow() {
  const part = document.getElementById("dry-run");
  if (!part?.hasAttribute("data-going")) {
    if (part && document.documentElement.dataset.followed) said.textContent = "The dry run is complete.";
    return;
  }
  document.documentElement.dataset.followed = "yes";
  await new Promise((done) => { setTimeout(done, EVERY); });
  try {
    const answer = await fetch(location.pathname + location.search, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const other = fresh.getElementById("dry-run");
      if (other) part.replaceWith(document.adoptNode(other));
      const list = fresh.getElementById("strategies");
      if (list) document.getElementById("strategies")?.replaceWith(document.adoptNode(list));
    }
  } catch { /* the next look will tell */ }
  follow();
}

document.addEventListener("submit", (event) => {
  if (!event.target.hasAttribute("data-sends")) return;
  const button = event.target.querySelector("button");
  said.textContent = "Uploading and reading the files…";
  const sending = Object.assign(document.createElement("p"), { className: "sending" });
  const bar = Object.assign(document.createElement("progress"), { ariaLabel: "Uploading" });
  sending.append(bar, "Uploading and reading the files: a minute or so for large ones.");
  button.after(sending);
  setTimeout(() => { button.disabled = true; });
});

for (const form of document.querySelectorAll("[data-drop]")) {
  const input = form.querySelector("[type=file]");
  const over = (event) => { event.preventDefault(); form.classList.toggle("over", event.type === "dragover"); };
  for (const kind of ["dragover", "dragleave", "drop"]) document.addEventListener(kind, over);
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length || event.target.closest?.("form.files")) return;
    input.files = event.dataTransfer.files;
    form.requestSubmit();
  });
}

document.addEventListener("change", (event) => {
  if (event.target.hasAttribute("data-changes")) event.target.form.requestSubmit();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard?.writeText(button.dataset.copy);
  button.textContent = "Copied";
});

follow();
