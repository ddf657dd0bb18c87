// A waiting page polls for questions and shows them when there are some.

const { base, state } = document.body.dataset;
let wait = 10000;

async function look() {
  try {
    const reply = await fetch(`${base}/work${location.search}`, { headers: { Accept: "application/json" } });
    const work = await reply.json();
    if (reply.ok && (work.questions?.length || (state && work.state !== state))) return location.reload();
  } catch { /* away: try again later */ }
  wait = Math.min(wait * 1.5, 60000);
  setTimeout(look, wait);
}

setTimeout(look, wait);
