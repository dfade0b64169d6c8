// Shows the databases that have all that the filters ask for, in the facts that are shown.
const form = document.getElementById("filters");
const rows = [...document.querySelectorAll("tr[data-database]")];
const attribute = (when, axis) => `data-${when}-${axis.replaceAll("_", "-")}`;
const has = (row, name, word) => row.getAttribute(name).split(" ").includes(word);

function fits(row, when, name, wanted, capability) {
  const whens = when === "both" ? ["today", "studied"] : [when];
  return row.dataset.title.includes(name)
    && (!capability || has(row, "data-can", capability))
    && wanted.every(([axis, word]) => whens.some((one) => has(row, attribute(one, axis), word)));
}

function update() {
  const when = document.getElementById("when").value;
  const name = document.getElementById("name").value.trim().toLowerCase();
  const capability = document.getElementById("capability").value;
  const wanted = [...form.querySelectorAll("select[data-axis]")].filter((one) => one.value).map((one) => [one.dataset.axis, one.value]);
  document.body.className = `show-${when}`;
  let shown = 0;
  for (const row of rows) {
    const hidden = !fits(row, when, name, wanted, capability);
    for (const part of document.querySelectorAll(`[data-of="${row.dataset.database}"]`)) part.hidden = hidden;
    shown += hidden ? 0 : 1;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length} databases`;
  document.getElementById("nothing").hidden = shown > 0;
}

// A link to a database opens what is said of it.
function open() {
  const wanted = location.hash && document.getElementById(location.hash.slice(1));
  if (wanted instanceof HTMLDetailsElement) wanted.open = true;
}

// In a narrow window so many choices would hide the databases.
document.getElementById("choices").open = window.innerWidth > 700;
form.addEventListener("input", update);
form.addEventListener("reset", () => setTimeout(update));
form.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", open);
update();
open();
