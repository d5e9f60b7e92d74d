// report_memory.js: the map of memory, and the curve of live bytes above it. x counts kernels, y counts
// bytes; both panels share x. The view is a rectangle in these units; drawing passes over
// blocks outside of it, and blocks narrower than a pixel are drawn as one, so that 20,000 kernels are no matter.
class MemoryMap {
  constructor(canvas, tip, onSelect) {
    Object.assign(this, { canvas, tip, onSelect, highlight: null, selected: null, kernel: null, pointers: new Map() });
    canvas.addEventListener("pointerdown", (e) => this.down(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.up(e));
    canvas.addEventListener("pointercancel", (e) => this.pointers.delete(e.pointerId));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("keydown", (e) => this.key(e));
  }

  show(f, temporaries) {
    this.f = f;
    this.low = temporaries ? f.base : 0;
    this.high = Math.max(PLAN.totals.arena, this.low + 1);
    this.all();
  }

  all() {
    this.view(0, Math.max(this.f.kernels.length, 1));
  }

  view(from, to) {
    const n = Math.max(this.f.kernels.length, 1);
    const span = Math.min(Math.max(to - from, Math.min(4, n)), n);
    this.from = Math.min(Math.max(from, 0), n - span);
    this.to = this.from + span;
    this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.view(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  // --- places --------------------------------------------------------------------------------------
  layout() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const top = Math.round(height * 0.2);
    return { left: 58, right: width - 8, curveTop: 18, curveBottom: top, top: top + 14, bottom: height - 26 };
  }
  x(kernel) {
    return this.box.left + ((kernel - this.from) / (this.to - this.from)) * (this.box.right - this.box.left);
  }
  y(address) {
    return this.box.bottom - ((address - this.low) / (this.high - this.low)) * (this.box.bottom - this.box.top);
  }
  kernelAt(px) {
    return this.from + ((px - this.box.left) / (this.box.right - this.box.left)) * (this.to - this.from);
  }

  // The last drawn is on top; a block of less than a few pixels is found from nearby.
  find(px, py) {
    let best = null, distance = 5;
    for (const b of this.f.buffers) {
      if (b.last + 1 < this.from || b.first > this.to || b.offset + b.bytes <= this.low) continue;
      const dx = Math.max(this.x(b.first) - px, px - this.x(b.last + 1), 0);
      const dy = Math.max(this.y(b.offset + b.bytes) - py, py - this.y(b.offset), 0);
      if (dx + dy <= distance && (dx + dy < distance || !best || dx + dy === 0)) {
        best = b;
        distance = dx + dy;
      }
    }
    return best;
  }

  // --- drawing -------------------------------------------------------------------------------------
  draw() {
    if (!this.f || !this.canvas.clientWidth) return;
    const c = openCanvas(this.canvas);
    this.box = this.layout();
    this.colours = Object.fromEntries(SHARES.map((s) => [s, colour(s)]));
    this.drawGrid(c);
    c.g.save();
    c.g.beginPath();
    c.g.rect(this.box.left, 0, this.box.right - this.box.left, c.height);
    c.g.clip();
    for (const b of this.f.buffers) this.drawBlock(c, b);
    this.drawCurve(c);
    this.drawPeak(c);
    if (this.kernel) this.drawKernel(c, this.kernel);
    if (this.selected) this.drawSelected(c, this.selected);
    c.g.restore();
  }

  drawGrid(c) {
    const { g } = c, box = this.box;
    beginGrid(c);
    for (let i = 0; i <= 4; i++) {
      const at = this.low + ((this.high - this.low) * i) / 4, y = Math.round(this.y(at)) + 0.5;
      line(g, box.left, y, box.right, y);
      g.fillText(bytesText(at), box.left - 6, y);
    }
    g.fillText(bytesText(Math.max(...this.peakRange())), box.left - 6, box.curveTop + 5);
    this.drawKernelAxis(c);
  }

  drawKernelAxis(c) {
    const { g } = c, box = this.box, span = this.to - this.from;
    const step = Math.max(1, niceStep(span / Math.max(2, (box.right - box.left) / 90)));
    g.textAlign = "center";
    g.textBaseline = "top";
    for (let k = Math.ceil(this.from / step) * step; k <= this.to; k += step) {
      const x = this.x(k + 0.5);
      if (k < this.f.kernels.length && x > box.left && x < box.right - 12) g.fillText(groupDigits(k), x, box.bottom + 4);
    }
    g.textAlign = "left";
    g.fillText("kernel", 8, box.bottom + 4);
    g.textBaseline = "alphabetic";
    g.fillText("live", 8, box.curveBottom);
  }

  drawBlock(c, b) {
    if (b.last + 1 < this.from || b.first > this.to || b.offset + b.bytes <= this.low) return;
    const { g } = c;
    const x0 = Math.max(this.x(b.first), this.box.left - 2), x1 = Math.min(this.x(b.last + 1), this.box.right + 2);
    const y0 = this.y(b.offset + b.bytes), y1 = this.y(Math.max(b.offset, this.low));
    const w = Math.max(x1 - x0, 0.6), h = Math.max(y1 - y0, 0.6);
    g.globalAlpha = this.highlight && this.highlight !== b.share ? 0.13 : 1;
    g.fillStyle = this.colours[b.share];
    g.fillRect(x0, y0, w, h);
    if (w > 3 && h > 3) {
      g.strokeStyle = c.plot;
      g.strokeRect(x0 + 0.5, y0 + 0.5, w - 1, h - 1);
    }
    if (w > 70 && h > 14) this.label(g, b, x0, y0, w, h);
    g.globalAlpha = 1;
  }

  label(g, b, x, y, w, h) {
    g.save();
    g.beginPath();
    g.rect(x, y, w - 4, h);
    g.clip();
    g.fillStyle = "#10131a";
    g.textAlign = "left";
    g.textBaseline = "middle";
    g.fillText(b.name, x + 5, y + h / 2);
    g.restore();
  }

  // The bytes at the bottom of the curve's panel and at its top.
  peakRange() {
    return [this.low, this.f.base + Math.max(this.f.peak_bytes, 1)];
  }

  drawCurve(c) {
    const { g } = c, box = this.box, [low, high] = this.peakRange();
    const y = (bytes) => box.curveBottom - ((bytes - low) / (high - low)) * (box.curveBottom - box.curveTop);
    const first = Math.max(0, Math.floor(this.from)), last = Math.min(this.f.live.length, Math.ceil(this.to));
    g.beginPath();
    g.moveTo(this.x(first), box.curveBottom);
    for (let k = first; k < last; k++) {
      g.lineTo(this.x(k), y(this.f.live[k]));
      g.lineTo(this.x(k + 1), y(this.f.live[k]));
    }
    g.lineTo(this.x(last), box.curveBottom);
    g.closePath();
    g.globalAlpha = 0.22;
    g.fillStyle = c.accent;
    g.fill();
    g.globalAlpha = 1;
    g.strokeStyle = c.accent;
    g.stroke();
    this.drawAgain(c);
  }

  // A mark below the curve for each kernel that runs again.
  drawAgain(c) {
    c.g.fillStyle = colour("gradient");
    for (const k of this.f.kernels)
      if (k.clone_of) c.g.fillRect(this.x(k.index), this.box.curveBottom + 3, Math.max(this.x(k.index + 1) - this.x(k.index), 1.5), 5);
  }

  drawPeak(c) {
    const { g } = c, k = this.f.peak_kernel;
    if (k === null) return;
    const x = this.x(k + 0.5), text = "peak " + bytesText(this.f.base + this.f.peak_bytes) + " at kernel " + groupDigits(k);
    g.strokeStyle = c.ink;
    g.setLineDash([4, 3]);
    line(g, x, this.box.curveTop - 4, x, this.box.bottom);
    g.setLineDash([]);
    g.fillStyle = c.ink;
    g.textBaseline = "alphabetic";
    g.textAlign = "left";
    g.fillText(text, Math.max(this.box.left, Math.min(x + 5, this.box.right - g.measureText(text).width)), 12);
  }

  // The kernel's column.
  drawKernel(c, k) {
    c.g.globalAlpha = 0.35;
    c.g.fillStyle = c.accent;
    c.g.fillRect(this.x(k.index), this.box.curveTop, Math.max(this.x(k.index + 1) - this.x(k.index), 2), this.box.bottom - this.box.curveTop);
    c.g.globalAlpha = 1;
  }

  // Its outline, and ticks where kernels write and read it.
  drawSelected(c, b) {
    const { g } = c, x0 = this.x(b.first), x1 = this.x(b.last + 1);
    const y0 = this.y(b.offset + b.bytes), y1 = this.y(Math.max(b.offset, this.low));
    g.strokeStyle = c.ink;
    g.lineWidth = 2;
    g.strokeRect(x0, y0 - 1, Math.max(x1 - x0, 2), Math.max(y1 - y0, 1) + 2);
    g.lineWidth = 1;
    for (const [kernels, fill] of [[b.readers, c.accent], [b.writers, c.ink]])
      for (const k of kernels) {
        g.fillStyle = fill;
        g.fillRect(this.x(k.index + 0.5) - 1.5, this.box.bottom - 1, 3, 6);
      }
  }

  // --- hands ---------------------------------------------------------------------------------------
  down(e) {
    const p = pointIn(this.canvas, e);
    this.pointers.set(e.pointerId, p);
    this.moved = false;
    this.start = { from: this.from, to: this.to, x: p.x };
    if (this.pointers.size === 2) this.spread = this.fingers();
  }

  fingers() {
    const [a, b] = [...this.pointers.values()];
    return { gap: Math.max(Math.abs(a.x - b.x), 20), at: this.kernelAt((a.x + b.x) / 2) };
  }

  move(e) {
    const p = pointIn(this.canvas, e);
    if (!this.pointers.has(e.pointerId)) return this.hover(p);
    this.pointers.set(e.pointerId, p);
    if (this.pointers.size === 2) {
      const now = this.fingers();
      this.moved = true;
      this.zoom(this.spread.gap / now.gap, this.spread.at);
      this.spread = this.fingers();
    } else if (this.moved || Math.abs(p.x - this.start.x) > 6) {
      const kernels = ((p.x - this.start.x) / (this.box.right - this.box.left)) * (this.start.to - this.start.from);
      this.moved = true;
      this.tip.hidden = true;
      this.view(this.start.from - kernels, this.start.to - kernels);
    }
  }

  up(e) {
    const p = pointIn(this.canvas, e);
    this.pointers.delete(e.pointerId);
    if (this.moved || this.pointers.size) return;
    const b = this.find(p.x, p.y);
    if (b) this.onSelect(b);
  }

  leave() {
    this.tip.hidden = true;
  }

  hover(p) {
    const b = this.find(p.x, p.y);
    if (b) placeTip(this.tip, this.canvas, p.x, p.y, tipLines(this.f, b));
    else this.tip.hidden = true;
  }

  wheel(e) {
    if (!e.ctrlKey && !e.metaKey && !e.shiftKey) return;
    e.preventDefault();
    this.zoom(Math.exp((e.deltaY || e.deltaX) * 0.002), this.kernelAt(pointIn(this.canvas, e).x));
  }

  key(e) {
    const list = this.f.buffers, at = list.indexOf(this.selected), span = this.to - this.from;
    const actions = {
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6), 0: () => this.all(),
      ArrowRight: () => this.onSelect(list[(at + 1) % list.length]),
      ArrowLeft: () => this.onSelect(list[(Math.max(at, 0) + list.length - 1) % list.length]),
      PageDown: () => this.view(this.from + span / 2, this.to + span / 2),
      PageUp: () => this.view(this.from - span / 2, this.to - span / 2),
    };
    if (!actions[e.key] || !list.length) return;
    e.preventDefault();
    actions[e.key]();
  }

  // Marks a buffer or a kernel, or nothing, and moves the view so that it is there.
  select(b, k) {
    this.selected = b;
    this.kernel = k;
    const first = b ? b.first : k?.index, last = b ? b.last : k?.index;
    if (last + 1 < this.from || first > this.to) {
      const half = (this.to - this.from) / 2, middle = (first + last + 1) / 2;
      this.view(middle - half, middle + half);
    } else this.draw();
  }
}

// 1, 2 or 5 times a power of ten, at least x.
function niceStep(x) {
  const power = 10 ** Math.floor(Math.log10(Math.max(x, 1)));
  return power * [1, 2, 5, 10].find((m) => m * power >= x);
}

const lifeText = (f, b) => (b.whole ? "the whole run" : "kernels " + groupDigits(b.first) + " to " + groupDigits(b.last));
const tipLines = (f, b) => [b.name, bytesText(b.bytes) + (b.type ? "  " + b.type : "") + ", " + b.share, lifeText(f, b) + (b.source ? ", " + baseName(b.source) : "")];
