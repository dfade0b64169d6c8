// The results of a site: what data.js has, filtered and compared; details are loaded when a page asks for them.
const { bundles, comparisons, shares, verdicts: WORDS, generated, pricePerHour } = window.SITE;
const bundleOf = Object.fromEntries(bundles.map((bundle) => [bundle.id, bundle]));
const comparisonOf = Object.fromEntries(comparisons.map((comparison) => [comparison.id, comparison]));
const content = document.getElementById("content"), form = document.getElementById("filters");
// Of many comparisons so many are drawn at first.
const AT_ONCE = 40;
let shownAll = false;
const STEPS = [1.05, 1.5, 3, 10, 100];
const COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f"];

// What can be chosen: of a variant, its comparison and its bundle.
const FILTERS = {
  dataset: ["dataset", (variant, comparison) => comparison.dataset],
  scale: ["scale", (variant, comparison) => comparison.scale ?? "whole"],
  database: ["database", (variant) => variant.database],
  version: ["version", (variant) => variant.version || "not known"],
  schema: ["schema", (variant) => variant.schema],
  machine: ["machine", (variant, comparison) => comparison.machine],
  hosts: ["nodes of the server", (variant) => variant.nodes],
  durability: ["durability", (variant) => variant.durability],
  consistency: ["consistency", (variant) => variant.consistency],
  trust: ["trust", (variant, comparison) => trustOf(bundleOf[comparison.bundle])],
  temperature: ["cold or hot", (variant) => variant.temperature],
};
const PARTS = { load: "load", size: "size", query: "queries", write: "writes" };

function trustOf(bundle) { return bundle.stale ? [bundle.trust, "stale"] : [bundle.trust]; }
function listed(value) { return Array.isArray(value) ? value : [value]; }

// Elements. Texts are never taken for HTML.
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
function svg(tag, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

// Numbers as people read them.
const significant = (number, digits = 3) => number === 0 ? "0" : number.toLocaleString("en", { maximumSignificantDigits: digits });
function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const [unit, name] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([unit]) => seconds >= unit * 0.9995) ?? [1e-9, "ns"];
  return `${significant(seconds / unit)} ${name}`;
}
const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const [unit, name] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([unit]) => bytes >= unit) ?? [1, "B"];
  return `${significant(bytes / unit)} ${name}`;
}

// Which page, and which choices: all of it stands in the address, so that it can be sent to others.
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), choices: new URLSearchParams(query ?? "") };
}
function address(path, choices = place().choices) {
  const query = choices.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

function makeFilters() {
  const values = {};
  for (const comparison of comparisons) for (const variant of comparison.variants)
    for (const [name, [, of]] of Object.entries(FILTERS)) for (const value of listed(of(variant, comparison))) (values[name] ??= new Set()).add(String(value));
  for (const [name, [title]] of Object.entries(FILTERS)) {
    const sorted = [...(values[name] ?? [])].sort(new Intl.Collator("en", { numeric: true }).compare);
    const select = el("select", { name }, el("option", { value: "" }, "any"), sorted.map((value) => el("option", { value }, value)));
    form.append(el("label", {}, title, select));
  }
  form.append(el("label", {}, "name", el("input", { type: "search", name: "name", placeholder: "any" })));
  form.append(el("fieldset", {}, el("legend", {}, "shown"), Object.entries(PARTS).map(([name, title]) =>
    el("label", {}, el("input", { type: "checkbox", name, checked: "" }), title))));
  form.append(el("button", { type: "reset" }, "clear"));
  form.addEventListener("input", () => {
    const choices = new URLSearchParams();
    for (const field of form.elements) {
      if (field.type === "checkbox") { if (!field.checked) choices.set(field.name, "no"); } else if (field.name && field.value) choices.set(field.name, field.value);
    }
    history.replaceState(null, "", address(place().path, choices));
    show(false);
  });
  form.addEventListener("reset", () => { history.replaceState(null, "", address(place().path, new URLSearchParams())); show(false); });
  form.addEventListener("submit", (event) => event.preventDefault());
}
function fillFilters(choices) {
  for (const field of form.elements) {
    if (field.type === "checkbox") field.checked = choices.get(field.name) !== "no";
    else if (field.name) field.value = choices.get(field.name) ?? "";
  }
}
function isShown(variant, comparison, choices) {
  const name = (choices.get("name") ?? "").toLowerCase();
  return (!name || variant.title.toLowerCase().includes(name))
    && Object.entries(FILTERS).every(([key, [, of]]) => !choices.get(key) || listed(of(variant, comparison)).map(String).includes(choices.get(key)));
}

// Ratios to the best of those that are shown and of the same class.
function columnsOf(comparison, choices) {
  const on = (part) => choices.get(part) !== "no", columns = [];
  if (on("load")) columns.push({ title: "Load and settle", of: (variant) => variant.load_s, shown: duration, classOf: () => "" });
  if (on("size")) columns.push({ title: "Size", of: (variant) => variant.bytes, shown: size, classOf: () => "" });
  comparison.operations.forEach((operation, number) => {
    if (operation.writes ? on("write") : on("query")) columns.push({
      title: operation.title, excluded: operation.excluded, of: (variant) => variant.values[number], shown: duration, counts: true,
      verdictOf: (variant) => WORDS[variant.verdicts[number]],
      classOf: (variant) => operation.writes ? `${variant.consistency} ${variant.durability}` : variant.consistency,
    });
  });
  return columns;
}
function ratiosOf(columns, variants) {
  return columns.map((column) => {
    const best = {};
    for (const variant of variants) {
      const value = column.of(variant), key = column.classOf(variant);
      if (value !== null && value > 0) best[key] = Math.min(best[key] ?? Infinity, value);
    }
    return variants.map((variant) => { const value = column.of(variant); return value !== null && value > 0 ? value / best[column.classOf(variant)] : null; });
  });
}
function overallOf(columns, ratios, number) {
  const own = columns.map((column, place) => [column, ratios[place]]).filter(([column, of]) => column.counts && of.some((ratio) => ratio !== null)).map(([, of]) => of[number]);
  return own.length && own.every((ratio) => ratio !== null) ? Math.exp(own.reduce((sum, ratio) => sum + Math.log(ratio), 0) / own.length) : null;
}
function heat(ratio, href, hint, mark) {
  if (ratio === null) return el("span", { class: "muted", title: hint ?? "not measured, or not ranked" }, "–");
  const classes = `heat heat-${STEPS.filter((step) => ratio >= step).length}`, text = [significant(ratio), mark ? el("span", { class: "level" }, ` ${mark}`) : null];
  return href ? el("a", { class: classes, href, title: hint }, text) : el("span", { class: classes, title: hint }, text);
}
function badges(bundle) {
  return trustOf(bundle).map((label) => [" ", el("span", { class: `badge ${label.replace(" ", "-")}`, title: bundle.why }, label)]).flat();
}
function table(head, rows, classes = "data") {
  const body = rows.map((row) => el("tr", {}, row.map((cell, number) => el("td", { "data-label": head[number] ?? "" }, cell))));
  return el("div", { class: "scroll" }, el("table", { class: classes }, el("thead", {}, el("tr", {}, head.map((title) => el("th", { scope: "col" }, title)))), el("tbody", {}, body)));
}
function facts(of) {
  return el("div", { class: "scroll" }, el("table", { class: "facts" }, el("tbody", {}, Object.entries(of).map(([name, value]) => el("tr", {}, el("th", {}, name), el("td", {}, String(value)))))));
}

function comparisonTable(comparison, choices) {
  const variants = comparison.variants.filter((variant) => isShown(variant, comparison, choices));
  const columns = columnsOf(comparison, choices), ratios = ratiosOf(columns, variants);
  const overall = variants.map((_, number) => overallOf(columns, ratios, number));
  const order = variants.map((_, number) => number).sort((one, other) => (overall[one] ?? Infinity) - (overall[other] ?? Infinity) || one - other);
  const head = ["Variant", "Overall", ...columns.map((column) => column.title), ...(pricePerHour ? ["Cost per million readings written", "Cost per 1,000 operations at the measured rate"] : [])];
  const rows = order.map((number) => {
    const variant = variants[number], link = address(["variant", comparison.id, variant.id]);
    return [
      [el("a", { href: link }, variant.title), el("span", { class: "muted" }, [variant.version, variant.temperature].filter(Boolean).join(" · "))],
      heat(overall[number], null, overall[number] === null ? "it lacks an operation that is shown" : "geometric mean of its ratios"),
      ...columns.map((column, place) => cell(column, ratios[place], variants, number, link)),
      ...(pricePerHour ? [cost(variant.write_cost), cost(variant.query_cost)] : []),
    ];
  });
  return table(head, rows, "data ratios");
}
// A verdict is against the fastest of all; it is said where that is the one of those shown, too.
function cell(column, ratios, variants, number, link) {
  const variant = variants[number], word = column.verdictOf?.(variant);
  const isAgainstFastest = word && variants.some((other, at) => ratios[at] === 1 && column.verdictOf(other) === "fastest" && column.classOf(other) === column.classOf(variant));
  const hint = column.excluded ?? [column.shown(column.of(variant)), isAgainstFastest ? word : ""].filter(Boolean).join("; ");
  return heat(ratios[number], link, hint, isAgainstFastest && word !== "fastest" && word !== "slower" ? "n.\u00a0s." : "");
}
const cost = (value) => value === null ? "–" : significant(value);

function startPage(choices) {
  const shown = comparisons.filter((comparison) => comparison.variants.some((variant) => isShown(variant, comparison, choices)));
  const count = shown.reduce((sum, comparison) => sum + comparison.variants.filter((variant) => isShown(variant, comparison, choices)).length, 0);
  const last = bundles.map((bundle) => bundle.measured).sort().at(-1) ?? "–";
  head("Results", `${counted(count, "variant")} in ${counted(shown.length, "comparison")}, of ${counted(bundles.length, "bundle")}. Last measured ${last}; page made ${generated}.`);
  const byStudy = Object.groupBy ? Object.groupBy(bundles, (bundle) => bundle.study) : bundles.reduce((all, bundle) => { (all[bundle.study] ??= []).push(bundle); return all; }, {});
  const studies = el("nav", { class: "contents", "aria-label": "Studies" }, el("ul", {}, Object.keys(byStudy).sort().map((study) =>
    el("li", {}, el("a", { href: address(["study", study]) }, `${study} (${byStudy[study].length})`)))));
  const tables = shown.slice(0, shownAll ? shown.length : AT_ONCE).map((comparison) => {
    const bundle = bundleOf[comparison.bundle];
    return el("section", {},
      el("h2", {}, el("a", { href: address(["bundle", bundle.id]) }, comparison.title), comparison.part ? ` · ${comparison.part}` : "", badges(bundle)),
      el("p", { class: "note" }, `${comparison.dataset}, scale ${comparison.scale ?? "whole"}; ${comparison.machine}; measured ${bundle.measured} with sensorbench ${bundle.version}; ${comparison.metric} response times`),
      comparisonTable(comparison, choices));
  });
  const nothing = shown.length ? null : el("p", { class: "note" }, comparisons.length ? "No variant has all of that. Clear a filter." : "None of the bundles is a comparison; the studies above list them.");
  const more = tables.length < shown.length ? el("button", { type: "button", class: "more" }, `Show all ${shown.length} comparisons`) : null;
  more?.addEventListener("click", () => { shownAll = true; show(false); });
  content.replaceChildren(...[studies, ...tables, more, nothing].filter(Boolean));
}

// Details lie in a file for each bundle.
const loading = {};
function details(bundle) {
  return loading[bundle] ??= new Promise((resolve, reject) => {
    const script = el("script", { src: `details/${encodeURIComponent(bundle)}.js` });
    script.addEventListener("load", () => resolve(window.DETAILS[bundle]));
    script.addEventListener("error", () => { delete loading[bundle]; reject(new Error(`details/${bundle}.js cannot be loaded; it belongs beside this page`)); });
    document.head.append(script);
  });
}

async function variantPage(comparison, variant) {
  const bundle = bundleOf[comparison.bundle];
  head(variant.title, `${comparison.title}${comparison.part ? ` · ${comparison.part}` : ""}`);
  const all = await details(bundle.id), own = all.variants[comparison.id][variant.id];
  const operations = Object.entries(own.operations), titles = Object.fromEntries(comparison.operations.map((operation) => [operation.name, operation.title]));
  const metrics = [...new Set(operations.flatMap(([, operation]) => Object.keys(operation.figures)))];
  return [
    el("p", {}, el("a", { href: address([]) }, "All results"), " · ", el("a", { href: address(["bundle", bundle.id]) }, bundle.title), badges(bundle)),
    el("p", { class: "note" }, own.summary),
    section("Latency", curve(operations.filter(([, operation]) => operation.curve.length).map(([name, operation]) => [titles[name] ?? name, operation.curve])),
      table(["Operation", ...metrics, "ok", "Verdict"], operations.map(([name, operation]) => [titles[name] ?? name,
        ...metrics.map((metric) => interval(operation.figures[metric])), String(operation.counts.ok), operation.verdict]), "data numbers")),
    section("Load and size", facts(own.facts)),
    section("Load-generator health", facts(own.health), own.warnings.map((text) => el("p", { class: "note" }, text))),
    section("Statements", el("dl", { class: "statements" }, Object.entries(own.statements).flatMap(([name, statement]) =>
      [el("dt", {}, titles[name] ?? name), el("dd", {}, el("pre", {}, el("code", {}, statement)))]))),
    section(`Schema file ${own.schema_file}`, el("details", {}, el("summary", {}, "Show the file"), el("pre", {}, el("code", {}, own.schema_text)))),
    section("Settings of the server", el("details", {}, el("summary", {}, `${Object.keys(own.settings).length} settings`), facts(own.settings))),
    ...again(bundle, all),
  ];
}
function interval(figure) {
  if (!figure) return "–";
  const [value, low, high] = figure;
  return low === null ? duration(value) : [duration(value), el("span", { class: "muted" }, `${duration(low)} – ${duration(high)}`)];
}
function section(title, ...children) { return el("section", {}, el("h2", {}, title), ...children); }

function again(bundle, all) {
  return [
    section("Measure it again", el("pre", { class: "command" }, el("code", {}, all.command)),
      el("p", { class: "note" }, "Then: ", el("code", {}, "sensorbench bundle FOLDER --out mine.sbz"))),
    section("Bundle", el("p", {}, el("a", { href: bundle.file, download: "" }, bundle.file.split("/").pop()), ` (${size(bundle.bytes)}${bundle.signed ? ", signed" : ""}; ${bundle.verified ? "verified" : "not verified"} when this page was made). ${bundle.trust}: ${bundle.why}.`),
      el("pre", { class: "command" }, el("code", {}, `sensorbench verify ${bundle.file.split("/").pop()}`)),
      all.unverified.length ? el("details", {}, el("summary", {}, "What cannot be verified"), el("ul", {}, all.unverified.map((text) => el("li", {}, text)))) : null),
  ];
}

async function bundlePage(bundle) {
  head(bundle.title, `${bundle.kind}, ${bundle.status}; measured ${bundle.measured} with sensorbench ${bundle.version} on ${bundle.machine}`);
  const all = await details(bundle.id), own = comparisons.filter((comparison) => comparison.bundle === bundle.id);
  return [
    el("p", {}, el("a", { href: address([]) }, "All results"), " · ", el("a", { href: address(["study", bundle.study]) }, `all of ${bundle.study}`), badges(bundle)),
    bundle.capacity ? el("p", { class: "headline" }, bundle.capacity) : null,
    bundle.query_cost !== null ? el("p", {}, `Cost per 1,000 queries at the objective: ${significant(bundle.query_cost)} (${pricePerHour} per hour)`) : null,
    ...own.map((comparison) => section(comparison.part || "Relative slowdown", comparisonTable(comparison, place().choices))),
    all.claims.length ? section("Verdicts", verdicts(all.claims)) : null,
    all.warnings.length ? section("What to know", el("ul", {}, all.warnings.map((text) => el("li", {}, text)))) : null,
    ...again(bundle, all),
  ];
}
const verdict = (word) => el("span", { class: `verdict ${word.replaceAll(" ", "-")}` }, word);
const verdicts = (claims) => table(["Claim", "Finding", "Published", "Verdict", "Why"], claims.map((claim) => [claim.id, claim.text, claim.published, verdict(claim.verdict), claim.reason]), "data claims");

async function studyPage(study) {
  const own = bundles.filter((bundle) => bundle.study === study).sort((one, other) => one.measured.localeCompare(other.measured));
  head(study, `${own.length} bundles, measured ${own.map((bundle) => bundle.measured).join(", ")}`);
  const all = await Promise.all(own.map((bundle) => details(bundle.id)));
  const claims = Object.fromEntries(all.flatMap((one) => one.claims.map((claim) => [claim.id, claim])));
  const named = own.map((bundle) => `${bundle.measured} · ${bundle.version}`);
  return [
    el("p", {}, el("a", { href: address([]) }, "All results")),
    section("Bundles", table(["Bundle", "Measured", "Version", "Machine", "Trust", "Verdicts"], own.map((bundle) => [el("a", { href: address(["bundle", bundle.id]) }, bundle.title),
      bundle.measured, bundle.version, bundle.machine, badges(bundle), Object.entries(bundle.verdicts).map(([word, count]) => `${count} ${word}`).join(", ") || "–"]))),
    Object.keys(claims).length ? section("Verdicts", table(["Claim", "Finding", ...named], Object.values(claims).map((claim) => [claim.id, claim.text,
      ...all.map((one) => { const found = one.claims.find((other) => other.id === claim.id); return found ? verdict(found.verdict) : "–"; })]), "data claims")) : null,
    section("History over versions", ...histories(own, named)),
  ];
}
// Absolute times of each variant: geometric mean over the operations that it has in all of its bundles on one machine.
function histories(own, named) {
  const series = {};
  own.forEach((bundle, at) => comparisons.filter((comparison) => comparison.bundle === bundle.id).forEach((comparison) => comparison.variants.forEach((variant) => {
    const key = JSON.stringify([comparison.part, comparison.dataset, comparison.scale, comparison.machine, variant.id]);
    (series[key] ??= { variant, part: comparison.part, machine: comparison.machine, at: {} }).at[at] = Object.fromEntries(comparison.operations.map((operation, number) => [operation.name, variant.values[number]]));
  })));
  const rows = Object.values(series).map(({ variant, part, machine, at }) => {
    const measured = Object.values(at), common = Object.keys(measured[0]).filter((name) => measured.every((one) => one[name] > 0));
    const means = own.map((_, number) => at[number] && common.length ? Math.exp(common.reduce((sum, name) => sum + Math.log(at[number][name]), 0) / common.length) : null);
    return [[variant.title, el("span", { class: "muted" }, [part, machine].filter(Boolean).join(" · "))], ...means.map(duration)];
  });
  return rows.length ? [el("p", { class: "note" }, "Geometric mean of a variant's response times over the operations that all its bundles have. Only what one machine measured stands in one line."),
    table(["Variant", ...named], rows, "data numbers")] : [el("p", { class: "note" }, "These bundles are no comparisons.")];
}

// Latency by share of operations, both logarithmic, so that the tail is seen.
function curve(lines) {
  if (!lines.length) return el("p", { class: "note" }, "No latency was recorded.");
  const [width, height, left, bottom] = [720, 320, 64, 34], all = lines.flatMap(([, values]) => values.filter((value) => value > 0));
  const [low, high] = [Math.log10(Math.min(...all)), Math.log10(Math.max(...all) * 1.05)];
  const widest = 4.3, x = (share) => left + (width - left - 12) * Math.min(widest, -Math.log10(1 - share)) / widest;
  const y = (value) => height - bottom - (height - bottom - 10) * (Math.log10(value) - low) / Math.max(high - low, 1e-9);
  const drawing = svg("svg", { class: "curve", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Latency by share of operations" });
  for (const share of [0, 0.5, 0.9, 0.99, 0.999, 0.9999]) {
    drawing.append(svg("line", { x1: x(share), x2: x(share), y1: 10, y2: height - bottom }), svg("text", { x: x(share), y: height - 14, "text-anchor": "middle" }, `${+(share * 100).toFixed(2)}%`));
  }
  const powers = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, number) => 10 ** (Math.ceil(low) + number));
  for (const value of powers.length > 1 ? powers : [10 ** low, 10 ** ((low + high) / 2), 10 ** high]) {
    drawing.append(svg("line", { x1: left, x2: width - 12, y1: y(value), y2: y(value) }), svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, duration(value)));
  }
  lines.forEach(([name, values], number) => {
    const path = svg("path", { d: values.map((value, at) => `${at ? "L" : "M"}${x(shares[at]).toFixed(1)} ${y(Math.max(value, 10 ** low)).toFixed(1)}`).join(""), stroke: COLOURS[number % COLOURS.length] });
    path.append(svg("title", {}, name));
    drawing.append(path);
  });
  return el("figure", {}, el("div", { class: "scroll" }, drawing),
    el("ul", { class: "keys" }, lines.map(([name], number) => el("li", {}, el("i", { style: `background:${COLOURS[number % COLOURS.length]}` }), name))),
    el("p", { class: "how" }, el("strong", {}, "How to read this:"), " at 99%, the latency that 99 of 100 operations did not exceed; both axes are logarithmic. Further to the right are rarer operations."));
}

function head(title, about) {
  document.getElementById("title").textContent = title;
  document.getElementById("about").textContent = about;
  document.title = `${title} – sensorbench`;
}
async function page(path) {
  const [kind, id, variant] = path;
  if (kind === "variant" && comparisonOf[id]) {
    const found = comparisonOf[id].variants.find((one) => one.id === variant);
    if (found) return variantPage(comparisonOf[id], found);
  }
  if (kind === "bundle" && bundleOf[id]) return bundlePage(bundleOf[id]);
  if (kind === "study" && bundles.some((bundle) => bundle.study === id)) return studyPage(id);
  head("Not here", "No bundle of this site has that.");
  return [el("p", {}, el("a", { href: "#/" }, "All results"))];
}
async function show(isNew = true) {
  const { path, choices } = place(), wanted = location.hash;
  document.getElementById("choices").hidden = path.length > 0 && path[0] !== "bundle";
  fillFilters(choices);
  if (!path.length) startPage(choices);
  else {
    try {
      const sections = await page(path);
      if (location.hash !== wanted) return;
      content.replaceChildren(...sections.filter(Boolean));
    } catch (error) {
      content.replaceChildren(el("p", { class: "banner bad" }, error.message));
    }
  }
  if (isNew) { scrollTo(0, 0); content.focus({ preventScroll: true }); }
}
makeFilters();
addEventListener("hashchange", () => show());
if (matchMedia("(max-width: 560px)").matches) document.getElementById("choices").open = false;
show(false);
