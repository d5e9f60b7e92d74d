// report_page.js: what is chosen (function, buffer or kernel, machine), the texts and tables that show it, and the
// address bar: #function=step&buffer=NAME or &kernel=NUMBER opens the page at a place.
const ROWS = 100; // that a table begins with, and grows by
const state = { f: null, rows: ROWS, sort: "index", down: false };
const memory = new MemoryMap(byId("memory"), byId("tip"), (b) => go({ buffer: b.key }));
const roofline = new Roofline(byId("roofline"), byId("rooftip"), (k) => go({ kernel: k.index }));

// --- the address ---------------------------------------------------------------------------------
function go(what) {
  const parts = new URLSearchParams({ function: state.f.name, ...what });
  history.replaceState(null, "", "#" + parts);
  open();
}

const byPeak = () => PLAN.functions.reduce((best, f, i) => (f.peak_bytes > PLAN.functions[best].peak_bytes ? i : best), 0);

function open() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const named = PLAN.functions.findIndex((f) => f.name === wanted.get("function"));
  const f = functionAt(named >= 0 ? named : state.f ? state.f.index : byPeak());
  if (f !== state.f) showFunction(f);
  const name = wanted.get("buffer"), kernel = f.kernels[wanted.get("kernel") ?? -1];
  const buffer = name && (f.byKey.get(name) ?? f.byKey.get("@" + name));
  memory.select(buffer || null, kernel ?? null);
  roofline.selected = kernel ?? null;
  roofline.draw();
  if (buffer) showBuffer(buffer);
  else if (kernel) showKernel(kernel);
  else showHint(name ?? wanted.get("kernel"));
  markRow();
}

function showFunction(f) {
  state.f = f;
  state.rows = ROWS;
  for (const b of byId("functions").children) b.setAttribute("aria-pressed", b.textContent === f.name);
  memory.show(f, byId("temporaries").checked);
  showShares();
  showTensors();
  showLines();
  showRoofline();
}

// --- figures -------------------------------------------------------------------------------------
function figure(name, value, more) {
  return el("div", null, el("dt", null, name), el("dd", null, value, el("small", null, more)));
}

function showFigures() {
  const t = PLAN.totals, r = PLAN.ratios, per = t.parameters ? (t.arena / t.parameters).toFixed(1) : "-";
  byId("figures").replaceChildren(
    figure("memory", bytesText(t.arena), groupDigits(t.arena) + " bytes, in one piece"),
    figure("parameters", groupDigits(t.parameters), per + " bytes of memory for each"),
    figure("arena / L_order", r.arena_bound.toFixed(4), "the most that is live at a time, in this order: " + bytesText(PLAN.bound)),
    figure("arena / L_ws", r.arena_bound_ws.toFixed(2), "what one kernel needs, in any order: " + bytesText(PLAN.bound_ws)),
    figure("recomputation", r.recompute_time.toFixed(3), r.recompute_time > 1 ? "of the time without" : "nothing is computed twice"),
  );
}

function showShares() {
  const f = state.f, total = PLAN.totals.arena;
  const present = SHARES.filter((s) => f.peakShares[s]).sort((a, b) => f.peakShares[b] - f.peakShares[a]);
  byId("shares-title").textContent = "What holds the peak of " + f.name;
  byId("sharebar").replaceChildren(...present.map((s) => el("span", { style: "background:var(--" + s + ");width:" + (100 * f.peakShares[s]) / total + "%" })));
  byId("shares").replaceChildren(...present.map((s) => el("li", null, shareButton(s, f.peakShares[s], total))));
  const again = f.recomputed;
  byId("recomputed").textContent = again.kernels
    ? groupDigits(again.kernels) + " kernels compute again what memory does not keep: " + flopsText(again.flops) + "FLOPs, " + bytesText(again.bytes) + " of traffic, about " + again.time.toFixed(3) + " of the time without. Marks below the curve show where."
    : "B/p: bytes per parameter. Tap a share to see where it is in the map below.";
}

function shareButton(share, bytes, total) {
  const per = PLAN.totals.parameters ? (bytes / PLAN.totals.parameters).toFixed(2) + " B/p" : "";
  const toggle = () => {
    memory.highlight = memory.highlight === share ? null : share;
    for (const b of byId("shares").querySelectorAll("button")) b.setAttribute("aria-pressed", b.dataset.share === memory.highlight);
    memory.draw();
  };
  return el("button", { type: "button", "data-share": share, "aria-pressed": memory.highlight === share, onclick: toggle }, el("i", { style: "background:var(--" + share + ")" }), el("span", null, share), el("span", null, bytesText(bytes)), el("em", null, percentText(bytes, total)), el("em", null, per));
}

// --- the selection -------------------------------------------------------------------------------
const kernelButton = (k, text) => el("button", { type: "button", onclick: () => go({ kernel: k.index }) }, text);
const numberedKernel = (k) => kernelButton(k, groupDigits(k.index) + "  " + k.name);
const bufferButton = (b) => el("button", { type: "button", onclick: () => go({ buffer: b.key }) }, b.name);

function list(title, items, make) {
  if (!items.length) return [el("h4", null, title + ": none")];
  const shown = items.slice(0, ROWS).map((x) => el("li", null, make(x)));
  if (items.length > ROWS) shown.push(el("li", null, "and " + groupDigits(items.length - ROWS) + " more"));
  return [el("h4", null, title + (items.length > 1 ? " (" + groupDigits(items.length) + ")" : "")), el("ul", null, ...shown)];
}

function facts(pairs) {
  return el("dl", null, ...pairs.filter((p) => p[1]).flatMap(([name, value]) => [el("dt", null, name), el("dd", null, value)]));
}

function showBuffer(b) {
  byId("detail").replaceChildren(
    el("h3", null, b.name),
    facts([
      ["bytes", groupDigits(b.bytes) + " (" + bytesText(b.bytes) + ")"],
      ["share", shareChip(b.share)],
      ["kind", b.kind + (b.role ? ", " + b.role : "")],
      ["type", b.type],
      ["address", groupDigits(b.offset)],
      ["life", lifeText(state.f, b)],
      ["in place of", b.in_place_of],
      ["source", b.source && el("code", null, b.source)],
    ]),
    ...list("written by", b.writers, numberedKernel),
    ...list("read by", b.readers, numberedKernel),
  );
}

// Of another file than the kernel's, its name, too.
function memberLine(k, source) {
  const file = (s) => s.replace(/:\d+$/, "");
  if (!source) return "";
  return k.source && file(k.source) === file(source) ? source.slice(file(source).length) : baseName(source);
}

function memberTable(k) {
  const rows = k.members.map(([op, type, source]) => el("tr", null, el("td", null, op), el("td", null, type), el("td", { class: "num" }, memberLine(k, source))));
  return el("table", null, el("caption", null, "fused ops (" + k.members.length + ")"), el("tbody", null, ...rows));
}

function showKernel(k) {
  const buffers = (names) => names.map((n) => state.f.byKey.get(n)).filter(Boolean);
  byId("detail").replaceChildren(
    el("h3", null, "kernel " + groupDigits(k.index) + ": " + k.name),
    facts([
      ["family", k.family],
      ["FLOPs", groupDigits(k.flops)],
      ["bytes", groupDigits(k.bytes_read) + " in, " + groupDigits(k.bytes_written) + " out"],
      ["intensity", k.intensity.toPrecision(3) + " FLOPs per byte"],
      ["at least", secondsText(k.time) + ", " + percentText(k.time, roofline.total)],
      ["computes again", k.clone_of],
      ["source", k.source && el("code", null, k.source)],
    ]),
    memberTable(k),
    ...list("reads", buffers(k.reads), bufferButton),
    ...list("writes", buffers(k.writes), bufferButton),
  );
}

function showHint(missing) {
  const text = missing ? "There is no " + missing + " in " + state.f.name + "." : "Nothing is selected. Tap a block of the map, a circle of the roofline or a name in a table.";
  byId("detail").replaceChildren(el("p", { class: "note" }, text));
}

// --- tables --------------------------------------------------------------------------------------
function barCell(text, part, whole) {
  return el("td", { class: "num bar-cell" }, text, el("i", { style: "width:" + Math.max((90 * part) / (whole || 1), 0).toFixed(1) + "%" }));
}

function showTensors() {
  const largest = state.f.buffers.slice().sort((a, b) => b.bytes - a.bytes || a.offset - b.offset).slice(0, 25);
  byId("tensors").replaceChildren(...largest.map((b) => el("tr", null, el("td", null, bufferButton(b)), el("td", null, shareChip(b.share)), barCell(bytesText(b.bytes), b.bytes, largest[0].bytes), el("td", { class: "num" }, b.whole ? "all" : b.first + "\u2013" + b.last))));
}

function showLines() {
  const f = state.f, sums = new Map();
  for (const b of liveAt(f, f.peak_kernel ?? 0)) {
    const key = b.source ? baseName(b.source) : "(no line)", sum = sums.get(key) ?? { buffers: 0, bytes: 0 };
    sums.set(key, { buffers: sum.buffers + 1, bytes: sum.bytes + aligned(b.bytes) });
  }
  const rows = [...sums].sort((a, b) => b[1].bytes - a[1].bytes).slice(0, 25);
  byId("lines").replaceChildren(...rows.map(([name, s]) => el("tr", null, el("td", null, el("code", null, name)), el("td", { class: "num" }, groupDigits(s.buffers)), barCell(bytesText(s.bytes), s.bytes, rows[0][1].bytes))));
}

const COLUMNS = [
  { key: "index", title: "#", text: (k) => groupDigits(k.index), num: true },
  { key: "name", title: "kernel", text: (k) => kernelButton(k, k.name) },
  { key: "family", title: "family", text: (k) => k.family + (k.clone_of ? ", again" : "") },
  { key: "opText", title: "ops", text: (k) => k.opText },
  { key: "flops", title: "FLOPs", text: (k) => flopsText(k.flops), num: true },
  { key: "bytes", title: "bytes", text: (k) => bytesText(k.bytes), num: true },
  { key: "intensity", title: "FLOPs/byte", text: (k) => k.intensity.toPrecision(3), num: true },
  { key: "time", title: "least time", text: (k) => secondsText(k.time), num: true, bar: true },
  { key: "source", title: "source", text: (k) => (k.source ? baseName(k.source) : "") },
];

function sortBy(column) {
  state.down = state.sort === column.key ? !state.down : !!column.num && column.key !== "index";
  state.sort = column.key;
  state.rows = ROWS;
  showKernels();
}

function showKernelHead() {
  byId("kernelhead").replaceChildren(
    ...COLUMNS.map((c) => {
      const sorted = c.key === state.sort ? (state.down ? "descending" : "ascending") : null;
      const mark = sorted ? (state.down ? " \u25be" : " \u25b4") : "";
      return el("th", { scope: "col", class: c.num ? "num" : null, "aria-sort": sorted }, el("button", { type: "button", onclick: () => sortBy(c) }, c.title + mark));
    }),
  );
}

function kernelRow(k, longest) {
  const cells = COLUMNS.map((c) => (c.bar ? barCell(c.text(k), k[c.key], longest) : el("td", { class: c.num ? "num" : null }, c.text(k))));
  return el("tr", { "data-kernel": k.index }, ...cells);
}

function matching() {
  const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (k) => (k.name + " " + k.family + " " + k.opText + " " + (k.source ?? "")).toLowerCase();
  return words.length ? state.f.kernels.filter((k) => words.every((w) => text(k).includes(w))) : state.f.kernels.slice();
}

function showKernels() {
  const order = (a, b) => (a[state.sort] < b[state.sort] ? -1 : a[state.sort] > b[state.sort] ? 1 : 0) * (state.down ? -1 : 1) || a.index - b.index;
  for (const k of state.f.kernels) k.opText ??= k.ops.join(" ");
  const rows = matching().sort(order), longest = rows.reduce((most, k) => Math.max(most, k.time), 0);
  showKernelHead();
  byId("kernels").replaceChildren(...rows.slice(0, state.rows).map((k) => kernelRow(k, longest)));
  byId("more").hidden = rows.length <= state.rows;
  byId("shown").textContent = groupDigits(Math.min(state.rows, rows.length)) + " of " + groupDigits(rows.length) + " kernels";
  markRow();
}

function markRow() {
  for (const row of byId("kernels").children)
    if (roofline.selected && +row.dataset.kernel === roofline.selected.index) row.setAttribute("aria-selected", "true");
    else row.removeAttribute("aria-selected");
}

const familyChip = (family) => el("span", { class: "chip" }, el("i", { style: "background:var(--" + familyColour(family) + ")" }), family);

// --- the machine ---------------------------------------------------------------------------------
function showRoofline() {
  const gflops = +byId("gflops").value || 1, gbytes = +byId("gbytes").value || 1;
  roofline.show(state.f, gflops, gbytes);
  byId("families").replaceChildren(...[...new Set(state.f.kernels.map((k) => k.family))].map(familyChip));
  byId("bound").textContent = "At least " + secondsText(roofline.total) + " for " + state.f.name + "; " + percentText(roofline.memoryBound(), roofline.total) + " of it in kernels that wait for memory (left of the balance, " + roofline.balance.toPrecision(3) + " FLOPs per byte). Circles: area is the share of the least time; kernels without FLOPs are not drawn.";
  showKernels();
}

function chooseMachine() {
  const machine = DATA.machines[byId("chip").value];
  byId("unit").replaceChildren(...Object.keys(machine.rates).map((u) => el("option", { value: u }, u)));
  byId("assumed").textContent = machine.assumed
    ? "Assumed, not measured: " + machine.assumed + ". Put in what your machine does."
    : "Rates of the data sheet of " + machine.name + ", at its boost clock.";
  byId("gbytes").value = machine.gbytes;
  chooseUnit();
}

function chooseUnit() {
  byId("gflops").value = DATA.machines[byId("chip").value].rates[byId("unit").value];
  if (state.f) showRoofline();
}

// --- the start -----------------------------------------------------------------------------------
function listen() {
  const on = (id, event, act) => byId(id).addEventListener(event, act);
  on("temporaries", "change", () => memory.show(state.f, byId("temporaries").checked));
  on("zoom-in", "click", () => memory.zoom(0.5));
  on("zoom-out", "click", () => memory.zoom(2));
  on("zoom-all", "click", () => memory.all());
  on("to-peak", "click", () => memory.view((state.f.peak_kernel ?? 0) - 12, (state.f.peak_kernel ?? 0) + 13));
  on("chip", "change", chooseMachine);
  on("unit", "change", chooseUnit);
  on("gflops", "input", showRoofline);
  on("gbytes", "input", showRoofline);
  on("find", "input", () => ((state.rows = ROWS), showKernels()));
  on("more", "click", () => ((state.rows += 5 * ROWS), showKernels()));
  window.addEventListener("hashchange", open);
  const redraw = () => (memory.draw(), roofline.draw());
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

function start() {
  document.title = PLAN.model + " - mltc report";
  byId("model").textContent = PLAN.model;
  byId("machine").textContent = "for " + DATA.machines.map((m) => m.name).join(", ");
  byId("chip").replaceChildren(...DATA.machines.map((m, i) => el("option", { value: i }, m.name)));
  byId("functions").replaceChildren(...PLAN.functions.map((f) => el("button", { type: "button", onclick: () => go({ function: f.name }) }, f.name)));
  showFigures();
  chooseMachine();
  listen();
  open();
  const counts = document.documentElement.dataset; // for tests
  counts.functions = PLAN.functions.length;
  counts.kernels = PLAN.functions.reduce((sum, f) => sum + f.kernels.length, 0);
  counts.buffers = PLAN.buffers.length + PLAN.functions.reduce((sum, f) => sum + f.buffers.length, 0);
}

window.addEventListener("error", (e) => (document.documentElement.dataset.error = e.message));
start();
