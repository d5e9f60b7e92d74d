// report_roofline.js: kernels by arithmetic intensity under the roof of a machine (Williams, Waterman and
// Patterson, CACM 52(4), 2009). Nothing is measured: a kernel lies on the roof, where it could be at best, and its
// circle's area is its share of the least time.
class Roofline {
  constructor(canvas, tip, onSelect) {
    Object.assign(this, { canvas, tip, onSelect, selected: null });
    canvas.addEventListener("pointermove", (e) => this.hover(e));
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));
    canvas.addEventListener("click", (e) => this.click(e));
  }

  show(f, gflops, gbytes) {
    Object.assign(this, { f, gflops, gbytes, balance: gflops / gbytes });
    this.total = 0;
    for (const k of f.kernels) {
      k.time = Math.max(k.flops / gflops, k.bytes / gbytes) * 1e-9;
      this.total += k.time;
    }
    const near = f.kernels.filter((k) => k.flops && k.bytes).map((k) => k.intensity).concat(this.balance);
    this.low = Math.floor(Math.log10(near.reduce((a, b) => Math.min(a, b))) - 0.1);
    this.high = Math.ceil(Math.log10(near.reduce((a, b) => Math.max(a, b))) + 0.1);
    this.top = Math.log10(gflops) + 0.35;
    this.bottom = Math.min(Math.log10(gbytes) + this.low, this.top - 1) - 0.2;
    this.draw();
  }

  roof(intensity) {
    return Math.min(this.gflops, intensity * this.gbytes);
  }
  x(intensity) {
    return this.box.left + ((Math.log10(intensity) - this.low) / (this.high - this.low)) * (this.box.right - this.box.left);
  }
  y(gflops) {
    return this.box.bottom - ((Math.log10(gflops) - this.bottom) / (this.top - this.bottom)) * (this.box.bottom - this.box.top);
  }
  radius(k) {
    return Math.max(2, Math.sqrt(k.time / (this.total || 1)) * this.box.scale);
  }

  draw() {
    if (!this.f || !this.canvas.clientWidth) return;
    const c = openCanvas(this.canvas);
    this.box = { left: 62, right: c.width - 14, top: 18, bottom: c.height - 34, scale: Math.min(c.width, 900) / 14 };
    this.drawGrid(c);
    this.drawRoof(c);
    c.g.globalAlpha = 0.55;
    const colours = Object.fromEntries(this.f.kernels.map((k) => [k.family, null]));
    for (const family of Object.keys(colours)) colours[family] = colour(familyColour(family));
    for (const k of this.f.kernels) if (k.flops && k.bytes) this.drawKernel(c, k, colours[k.family]);
    c.g.globalAlpha = 1;
    if (this.selected && this.selected.flops) this.drawSelected(c, this.selected);
  }

  drawGrid(c) {
    const { g } = c, box = this.box;
    beginGrid(c);
    for (let e = Math.ceil(this.bottom); e <= this.top; e++) {
      const y = Math.round(this.y(10 ** e)) + 0.5;
      line(g, box.left, y, box.right, y);
      g.fillText(flopsText(10 ** (e + 9)), box.left - 6, y);
    }
    g.textAlign = "left";
    g.fillText("FLOP/s", 6, box.top - 4);
    g.textAlign = "center";
    g.textBaseline = "top";
    for (let e = this.low; e <= this.high; e++) {
      const x = Math.round(this.x(10 ** e)) + 0.5;
      line(g, x, box.top, x, box.bottom);
      g.fillText(e < -2 || e > 4 ? "10^" + e : String(+(10 ** e).toPrecision(1)), x, box.bottom + 4);
    }
    g.fillText("FLOPs per byte", (box.left + box.right) / 2, box.bottom + 18);
  }

  drawRoof(c) {
    const { g } = c, x = this.x(this.balance);
    g.strokeStyle = c.ink;
    g.lineWidth = 2;
    g.beginPath();
    g.moveTo(this.x(10 ** this.low), this.y(this.roof(10 ** this.low)));
    g.lineTo(x, this.y(this.gflops));
    g.lineTo(this.box.right, this.y(this.gflops));
    g.stroke();
    g.lineWidth = 1;
    g.setLineDash([4, 3]);
    line(g, x, this.y(this.gflops), x, this.box.bottom);
    g.setLineDash([]);
    g.fillStyle = c.ink;
    g.textAlign = x > this.box.right - 110 ? "right" : "left";
    g.textBaseline = "alphabetic";
    g.fillText("balance " + this.balance.toPrecision(3), x + (x > this.box.right - 110 ? -6 : 6), this.box.bottom - 6);
  }

  drawKernel(c, k, fill) {
    c.g.fillStyle = fill;
    c.g.beginPath();
    c.g.arc(this.x(k.intensity), this.y(this.roof(k.intensity)), this.radius(k), 0, 7);
    c.g.fill();
  }

  drawSelected(c, k) {
    c.g.strokeStyle = c.ink;
    c.g.lineWidth = 2;
    c.g.beginPath();
    c.g.arc(this.x(k.intensity), this.y(this.roof(k.intensity)), this.radius(k) + 3, 0, 7);
    c.g.stroke();
    c.g.lineWidth = 1;
  }

  // The smallest circle that the point is in: larger ones lie around it.
  find(e) {
    const { x, y } = pointIn(this.canvas, e);
    let best = null;
    for (const k of this.f.kernels) {
      if (!k.flops || !k.bytes) continue;
      const d = Math.hypot(this.x(k.intensity) - x, this.y(this.roof(k.intensity)) - y);
      if (d <= this.radius(k) + 3 && (!best || k.time < best.time)) best = k;
    }
    return { k: best, x, y };
  }

  hover(e) {
    const { k, x, y } = this.find(e);
    if (!k) return void (this.tip.hidden = true);
    placeTip(this.tip, this.canvas, x, y, [k.name, k.family + ", " + k.intensity.toPrecision(3) + " FLOPs per byte", "at least " + secondsText(k.time) + ", " + percentText(k.time, this.total)]);
  }

  click(e) {
    const { k } = this.find(e);
    if (k) this.onSelect(k);
  }

  memoryBound() {
    return this.f.kernels.reduce((sum, k) => sum + (k.intensity < this.balance ? k.time : 0), 0);
  }
}

const FAMILY_COLOURS = { loop: "temporary", matmul: "parameter", attention: "activation", copy: "state", scatter: "staging" };
const familyColour = (family) => FAMILY_COLOURS[family] ?? "result";
