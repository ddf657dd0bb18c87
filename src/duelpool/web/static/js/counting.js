// Reloads until the figures are ready.
const EVERY = 2000;

async function look() {
  try {
    const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.status !== 503) { location.reload(); return; }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("told");
    if (fresh) document.getElementById("told").textContent = fresh.textContent;
  } catch { /* the next look will tell */ }
  setTimeout(look, EVERY);
}

setTimeout(look, EVERY);
