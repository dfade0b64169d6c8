"use strict";
(() => {
  const ALL = "", NEWEST = "", MAX_POINTS = 400;
  const isLive = document.body.dataset.live === "yes";
  const byId = (id) => document.getElementById(id);
  const runs = new Map();
  let newest = null, isOver = false, until = null, playing = null, isPlanned = false;

  function receive(message) {
    if (message.kind === "begin") {
      runs.set(message.run, { ...message, intervals: [], cpu: [], events: [], dropped: null, in_flight: null, status: "running" });
      newest = message.run;
      addOption(byId("run"), message.run, `${message.variant}, ${message.run}`);
    } else if (message.kind === "progress") {
      const run = runs.get(message.run);
      for (const key of ["intervals", "cpu", "events"]) for (const row of message[key]) run[key].push(row);
      run.dropped = message.dropped;
      run.in_flight = message.in_flight;
      for (const row of message.intervals) addOption(byId("operation"), row.operation, row.operation);
    } else if (message.kind === "end") {
      const run = runs.get(message.run);
      run.status = message.status;
      run.in_flight = null;
    } else {
      isOver = true;
    }
    plan();
  }

  function addOption(select, value, text) {
    if ([...select.options].some((option) => option.value === value)) return;
    select.add(new Option(text, value));
  }

  /** Draws once for all that came meanwhile, and not while nobody looks. */
  function plan() {
    if (isPlanned) return;
    isPlanned = true;
    setTimeout(() => { isPlanned = false; draw(); }, 50);
  }

  function endOf(run) {
    const ends = [...run.intervals.map((row) => row.time_s + row.length_s), ...run.cpu.map((row) => row.time_s), ...run.events.map((row) => row.time_s)];
    return ends.reduce((a, b) => Math.max(a, b), 0);
  }

  /** Sums up kinds of operations and phases that share an interval. */
  function seconds(run, operation, last) {
    const found = new Map();
    for (const row of run.intervals) {
      if ((operation !== ALL && row.operation !== operation) || row.time_s + row.length_s > last + 1e-6) continue;
      const at = found.get(row.time_s) ?? { time_s: row.time_s + row.length_s, length_s: row.length_s, ok: 0, failed: 0, late: 0, p50_s: null, p95_s: null, p99_s: null };
      for (const key of ["ok", "failed", "late"]) at[key] += row[key];
      for (const key of ["p50_s", "p95_s", "p99_s"]) if (row[key] !== null) at[key] = Math.max(at[key] ?? 0, row[key]);
      found.set(row.time_s, at);
    }
    return [...found.values()].sort((a, b) => a.time_s - b.time_s);
  }

  const perSecond = (rows, key) => rows.map((row) => [row.time_s, row[key] / row.length_s]);
  const inMs = (rows, key) => rows.filter((row) => row[key] !== null).map((row) => [row.time_s, row[key] * 1e3]);

  function draw() {
    const run = runs.get(byId("run").value === NEWEST ? newest : byId("run").value);
    if (!run) return;
    const end = endOf(run), last = until === null ? end : Math.min(until, end);
    const rows = seconds(run, byId("operation").value, last);
    const cpu = run.cpu.filter((row) => row.time_s <= last);
    const events = [...phases(run), ...run.events].filter((row) => row.time_s <= last).sort((a, b) => a.time_s - b.time_s);
    const processes = [...new Set(cpu.map((row) => row.process))];
    document.title = `${run.variant} – sensorbench`;
    byId("title").textContent = run.variant;
    byId("state").textContent = stateOf(run, last);
    tiles(run, rows, cpu, last >= end);
    chart("throughput", { completed: perSecond(rows, "ok"), failed: perSecond(rows, "failed") }, end, events);
    chart("latency", { p50: inMs(rows, "p50_s"), p95: inMs(rows, "p95_s"), p99: inMs(rows, "p99_s") }, end, events, { isLog: true });
    chart("health", { late: perSecond(rows, "late") }, end, events);
    chart("cpu", Object.fromEntries(processes.map((name) => [name, cpu.filter((row) => row.process === name).map((row) => [row.time_s, row.cpus])])), end, events);
    byId("events").replaceChildren(...events.map(eventItem));
    byId("no-events").hidden = events.length > 0;
    byId("replay").hidden = isLive && !isOver;
    byId("until").max = String(end);
    if (until === null) byId("until").value = String(end);
  }

  /** When each phase of the run began, to the second in which its first operations ended. */
  function phases(run) {
    const found = new Map();
    for (const row of run.intervals) found.set(row.phase, Math.min(found.get(row.phase) ?? Infinity, row.time_s));
    return [...found].map(([name, time_s]) => ({ time_s, name: `phase: ${name}` }));
  }

  function stateOf(run, last) {
    const said = run.status === "running" ? "goes on" : run.status;
    const done = isLive && isOver ? " The command has ended. sensorbench watch FOLDER shows this page again." : "";
    return `Run ${run.run}, repetition ${run.repetition}: ${said}, ${last.toFixed(1)} s.${done}`;
  }

  function eventItem(event) {
    const item = document.createElement("li"), time = document.createElement("time");
    time.textContent = `${event.time_s.toFixed(1)} s `;
    item.append(time, event.name);
    return item;
  }

  function tiles(run, rows, cpu, isAtEnd) {
    const row = rows[rows.length - 1];
    const latest = (name) => cpu.filter((point) => (name === "client") === (point.process === "client"));
    const busy = (points) => {
      const byName = new Map(points.map((point) => [point.process, point.cpus]));
      return byName.size ? [...byName.values()].reduce((a, b) => a + b, 0).toFixed(2) : "–";
    };
    const ms = (value) => (value === null || value === undefined ? "–" : `${short(value * 1e3)} ms`);
    const late = rows.reduce((sum, each) => sum + each.late, 0);
    const failed = rows.reduce((sum, each) => sum + each.failed, 0);
    const client = Number(busy(latest("client")));
    const shown = [
      ["completed per second", row ? short(row.ok / row.length_s) : "–"],
      ["p50", ms(row?.p50_s)], ["p95", ms(row?.p95_s)], ["p99", ms(row?.p99_s)],
      ["failed", failed.toLocaleString("en"), failed > 0],
      ["in flight", run.in_flight === null || !isAtEnd ? "–" : String(run.in_flight)],
      ["dropped arrivals", run.dropped === null || !isAtEnd ? "–" : run.dropped.toLocaleString("en"), run.dropped > 0 && isAtEnd],
      ["late starts", late.toLocaleString("en"), late > 0],
      [run.is_embedded ? "client and database CPUs" : "client CPUs", busy(latest("client")), !run.is_embedded && client > 0.8 * run.threads],
      ...(run.is_embedded ? [] : [["server CPUs", busy(latest("server"))]]),
    ];
    byId("tiles").replaceChildren(...shown.map(([name, value, warns]) => {
      const tile = document.createElement("div"), term = document.createElement("dt"), figure = document.createElement("dd");
      term.textContent = name;
      figure.textContent = value;
      tile.className = warns ? "warn" : "";
      tile.append(term, figure);
      return tile;
    }));
  }

  const short = (value) => (value === 0 ? "0" : value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3))));

  /** The largest of each few points, so that long runs are drawn quickly and no peak is lost. */
  function thinned(points) {
    const step = Math.ceil(points.length / MAX_POINTS);
    if (step <= 1) return points;
    const kept = [];
    for (let i = 0; i < points.length; i += step) kept.push(points.slice(i, i + step).reduce((a, b) => (b[1] > a[1] ? b : a)));
    return kept;
  }

  function chart(id, series, end, events, { isLog = false } = {}) {
    const svg = byId(id), width = svg.clientWidth || 400, height = 210;
    const left = 52, right = width - 8, top = 24, bottom = height - 22;
    const drawn = Object.entries(series).filter(([, points]) => points.length);
    const values = drawn.flatMap(([, points]) => points.map((point) => point[1])).filter((value) => !isLog || value > 0);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren();
    if (!values.length) return void label(svg, left, (top + bottom) / 2, "nothing yet");
    let high = values.reduce((a, b) => Math.max(a, b), 0), low = 0;
    const ticks = isLog ? powers(values.reduce((a, b) => Math.min(a, b)), high) : even(high);
    low = isLog ? ticks[0] : 0;
    high = ticks[ticks.length - 1];
    const scale = isLog ? Math.log10 : (value) => value;
    const x = (time) => left + ((right - left) * time) / (end || 1);
    const y = (value) => bottom - ((bottom - top) * (scale(Math.max(value, low)) - scale(low))) / (scale(high) - scale(low) || 1);
    for (const tick of ticks) {
      line(svg, "axis", left, y(tick), right, y(tick));
      label(svg, left - 6, y(tick) + 4, short(tick), "end");
    }
    label(svg, left, height - 4, "0 s");
    label(svg, right, height - 4, `${short(end)} s`, "end");
    for (const event of events) line(svg, "event", x(event.time_s), top, x(event.time_s), bottom);
    let at = left;
    drawn.forEach(([name, points], number) => {
      const path = element("path", { class: `line c${number % 5}`, d: `M${thinned(points).map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`).join("L")}` });
      if (points.length === 1) path.setAttribute("d", `${path.getAttribute("d")}h3`);
      svg.append(path);
      const text = label(svg, at, 12, name, "start", `name c${number % 5}`);
      at += text.getComputedTextLength() + 16;
    });
  }

  function even(high) {
    if (high <= 0) return [0, 1];
    const power = 10 ** Math.floor(Math.log10(high / 4));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => high / each <= 5);
    return Array.from({ length: Math.ceil(high / step - 1e-9) + 1 }, (_, number) => Number((number * step).toPrecision(6)));
  }

  function powers(low, high) {
    const first = Math.floor(Math.log10(low)), last = Math.max(first + 1, Math.ceil(Math.log10(high)));
    return Array.from({ length: last - first + 1 }, (_, number) => Number(`1e${first + number}`));
  }

  function element(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  const line = (svg, kind, x1, y1, x2, y2) => svg.append(element("line", { class: kind, x1, y1, x2, y2 }));

  function label(svg, x, y, text, anchor = "start", kind = "") {
    const made = element("text", { x, y, "text-anchor": anchor, class: kind });
    made.textContent = text;
    svg.append(made);
    return made;
  }

  function stop() {
    clearInterval(playing);
    playing = null;
    byId("play").textContent = "Play";
  }

  function play() {
    if (playing !== null) return stop();
    const run = runs.get(byId("run").value === NEWEST ? newest : byId("run").value);
    if (!run) return;
    const end = endOf(run);
    if (until === null || until >= end) until = 0;
    byId("play").textContent = "Pause";
    let before = performance.now();
    playing = setInterval(() => {
      const now = performance.now();
      until += ((now - before) / 1e3) * Number(byId("speed").value);
      before = now;
      if (until >= end) { until = null; stop(); } else byId("until").value = String(until);
      draw();
    }, 200);
  }

  addOption(byId("run"), NEWEST, isLive ? "newest" : "last");
  addOption(byId("operation"), ALL, "all, the slowest kind");
  byId("run").addEventListener("change", () => { stop(); until = null; draw(); });
  byId("operation").addEventListener("change", draw);
  byId("play").addEventListener("click", play);
  byId("until").addEventListener("input", () => { stop(); until = Number(byId("until").value); draw(); });
  addEventListener("resize", plan);
  const source = new EventSource("/events");
  source.onmessage = (event) => {
    const message = JSON.parse(event.data);
    receive(message);
    if (message.kind === "over") source.close();
  };
  source.onerror = () => {
    if (!isOver) byId("state").textContent = "No connection to sensorbench; trying again.";
  };
})();
