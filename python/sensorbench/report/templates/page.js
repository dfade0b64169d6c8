// Sorts tables, and shows what terms mean. Without it, a page has all the same words.
const texts = new Intl.Collator("en", { numeric: true });
const valueOf = (row, column) => row.cells[column]?.dataset.value ?? "";

function compare(one, other) {
  const [left, right] = [Number(one), Number(other)];
  return one !== "" && other !== "" && !Number.isNaN(left) && !Number.isNaN(right) ? left - right : texts.compare(one, other);
}

function sortBy(table, heading) {
  const isAscending = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of heading.parentElement.cells) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
  const column = heading.cellIndex, body = table.tBodies[0];
  const rows = [...body.rows].sort((one, other) => {
    const [left, right] = [valueOf(one, column), valueOf(other, column)];
    // What is not known is last, whichever way.
    if (!left || !right) return (left ? 0 : 1) - (right ? 0 : 1);
    return (isAscending ? 1 : -1) * compare(left, right);
  });
  table.classList.add("sorted");
  body.append(...rows);
}

for (const table of document.querySelectorAll("table.data")) {
  if (table.tBodies[0].rows.length < 3) continue;
  for (const heading of table.tHead.rows[0].cells) {
    if (!heading.textContent.trim()) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sortBy(table, heading));
  }
}

// One hint for all terms, which no box with a scroll bar cuts off.
const hint = document.getElementById("hint");
const hide = () => { hint.hidden = true; };

function showHint(term) {
  hint.textContent = term.dataset.hint;
  hint.hidden = false;
  const at = term.getBoundingClientRect(), own = hint.getBoundingClientRect();
  hint.style.left = `${Math.max(8, Math.min(at.left, innerWidth - own.width - 8))}px`;
  hint.style.top = `${at.bottom + own.height + 6 > innerHeight ? at.top - own.height - 6 : at.bottom + 6}px`;
}

for (const term of document.querySelectorAll("abbr.term")) {
  term.dataset.hint = term.title;
  term.removeAttribute("title");
  // A term above a column is reached by its button.
  const focused = term.closest("button") ?? term;
  if (focused !== term) term.removeAttribute("tabindex");
  focused.setAttribute("aria-describedby", "hint");
  for (const [target, event, does] of [[term, "mouseenter", showHint], [focused, "focus", showHint], [term, "mouseleave", hide], [focused, "blur", hide]]) {
    target.addEventListener(event, () => does(term));
  }
}
addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
addEventListener("scroll", hide, { passive: true });

// On paper nothing can be opened.
addEventListener("beforeprint", () => { for (const details of document.querySelectorAll("details")) details.open = true; });
