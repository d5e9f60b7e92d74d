// report_data.js: the plan as the page looks at it. Kernels get their place and intensity, buffers get
// the kernels that write and read them, functions get the bytes that are live at each kernel.
const SHARES = ["parameter", "gradient", "moment", "activation", "state", "staging", "workspace", "result", "temporary"];
const DATA = JSON.parse(document.getElementById("data").textContent);
const PLAN = DATA.plan;

const aligned = (bytes) => Math.ceil(bytes / PLAN.alignment) * PLAN.alignment;

function groupDigits(n) {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function scaled(n, base, units, digits) {
  let at = 0;
  while (Math.abs(n) >= base && at < units.length - 1) {
    n /= base;
    at++;
  }
  return (at ? n.toFixed(n >= 100 ? Math.max(digits - 2, 0) : n >= 10 ? digits - 1 : digits) : String(+n.toPrecision(3))) + " " + units[at];
}
const bytesText = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"], 2);
const flopsText = (n) => scaled(n, 1000, ["", "k", "M", "G", "T", "P"], 2).trim();
const secondsText = (s) => scaled(s * 1e9, 1000, ["ns", "\u00b5s", "ms", "s"], 2);
const baseName = (source) => source.replace(/^.*\//, "");
const percentText = (part, whole) => (whole ? (100 * part) / whole : 0).toFixed(1) + " %";

function readKernel(k, index, members) {
  const bytes = k.bytes_read + k.bytes_written;
  return { ...k, index, bytes, intensity: bytes ? k.flops / bytes : 0, members };
}

function readBuffer(b, last) {
  const whole = b.first === null;
  return { ...b, whole, key: (b.kind === "state" ? "@" : "") + b.name, first: whole ? 0 : b.first, last: whole ? last : b.last, writers: [], readers: [] };
}

// Buffers by the names that kernels use; an input's first slot stands for both.
function connect(f) {
  const byKey = new Map(f.buffers.map((b) => [b.key, b]));
  for (const k of f.kernels) {
    for (const name of k.reads) if (byKey.has(name)) byKey.get(name).readers.push(k);
    for (const name of k.writes) if (byKey.has(name)) byKey.get(name).writers.push(k);
  }
  for (const b of f.buffers) {
    const first = b.kind === "staging" && byKey.get(b.name.replace(/\[\d+\]$/, "[0]"));
    if (first && first !== b) b.readers = first.readers;
    if (b.kind === "workspace") b.writers = b.readers = [f.kernels[b.first]];
  }
  f.byKey = byKey;
}

// A buffer that takes over memory counts from the next kernel on.
function findLive(f) {
  const change = new Float64Array(f.kernels.length + 2);
  for (const b of f.buffers) {
    if (b.whole) continue;
    change[b.first + (b.in_place_of ? 1 : 0)] += aligned(b.bytes);
    change[b.last + 1] -= aligned(b.bytes);
  }
  let sum = f.base;
  f.live = f.kernels.map((_, i) => (sum += change[i]));
}

const liveAt = (f, k) => f.buffers.filter((b) => b.whole || (b.first + (b.in_place_of ? 1 : 0) <= k && k <= b.last));

function readFunction(plain, index) {
  const kernels = plain.kernels.map((k, i) => readKernel(k, i, DATA.groups[DATA.members[index][i]]));
  const last = Math.max(kernels.length - 1, 0);
  const own = plain.buffers.map((b) => readBuffer(b, last));
  const f = { ...plain, index, kernels, buffers: PLAN.buffers.map((b) => readBuffer(b, last)).concat(own) };
  f.base = PLAN.totals.states + PLAN.totals.staging;
  f.wholeShares = Object.fromEntries(SHARES.map((s) => [s, 0]));
  for (const b of PLAN.buffers) f.wholeShares[b.share] += aligned(b.bytes);
  f.peakShares = Object.fromEntries(SHARES.map((s) => [s, f.wholeShares[s] + plain.shares[s]]));
  connect(f);
  findLive(f);
  return f;
}

// Functions are read when they are first looked at: a large plan has many buffers.
const readFunctions = [];
const functionAt = (i) => (readFunctions[i] ??= readFunction(PLAN.functions[i], i));

// --- elements ------------------------------------------------------------------------------------
const byId = (id) => document.getElementById(id);

// el("td", {class: "num"}, "text", child): what a plan says is only ever put in as text.
function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {}))
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) e.setAttribute(name, value);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const shareChip = (share) => el("span", { class: "chip" }, el("i", { style: "background:var(--" + share + ")" }), share);

// The canvas at the screen's own resolution, with sizes in CSS pixels.
function openCanvas(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.font = "11px system-ui, sans-serif";
  return { g, width, height, ink: colour("ink"), soft: colour("soft"), grid: colour("grid"), plot: colour("plot"), accent: colour("accent") };
}

// Where a pointer is in the canvas, in the same pixels.
function pointIn(canvas, e) {
  const r = canvas.getBoundingClientRect();
  return { x: e.clientX - r.left - canvas.clientLeft, y: e.clientY - r.top - canvas.clientTop };
}

function line(g, x0, y0, x1, y1) {
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
}

// A grid's colours, for numbers left of an axis.
function beginGrid(c) {
  c.g.strokeStyle = c.grid;
  c.g.fillStyle = c.soft;
  c.g.textAlign = "right";
  c.g.textBaseline = "middle";
}

function placeTip(tip, canvas, x, y, lines) {
  tip.replaceChildren(el("b", null, lines[0]), ...lines.slice(1).map((t) => el("div", null, t)));
  tip.hidden = false;
  const left = Math.min(Math.max(x + 12, 4), canvas.clientWidth - tip.offsetWidth - 4);
  const top = y + 16 + tip.offsetHeight > canvas.clientHeight ? y - tip.offsetHeight - 10 : y + 16;
  tip.style.left = Math.max(left, 0) + "px";
  tip.style.top = Math.max(top, 0) + "px";
}
