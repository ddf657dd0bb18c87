// A win matrix: pointing at a cell or focusing it says in words which item beat which, and how often.
const box = document.getElementById("matrix")?.parentElement, said = document.getElementById("cell-said");
const wordsOf = (head) => head.querySelector(".first-words, .id")?.textContent ?? head.textContent;

function tell(event) {
  const cell = event.target.closest?.("td:has(a)");
  if (!cell) return;
  const row = cell.parentElement, rows = [...row.parentElement.children], at = cell.cellIndex - 1;
  const won = Number(cell.textContent), lost = Number(rows[at].cells[rows.indexOf(row) + 1].textContent);
  said.textContent = `“${wordsOf(row.cells[0])}” beat “${wordsOf(rows[at].cells[0])}” in ${won} of ${won + lost} ${won + lost === 1 ? "judgment" : "judgments"}`;
}

box?.addEventListener("pointerover", tell);
box?.addEventListener("focusin", tell);
