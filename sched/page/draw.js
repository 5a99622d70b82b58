// The canvas: what is visible of each row, as many rectangles as pixels at most.
const cv = $("c"), cx = cv.getContext("2d"), ov = $("over"), ox = ov.getContext("2d");
const RULER = 22, GROUP = 22;
let LEFT = 190;
let t0 = 0, t1 = end, scrollY = 0;   // the view
let sel = -1, row = null;            // selected execution, current row
let mark = null, markCount = 0;      // of each instruction: highlighted or not; null: no highlight
let marked = null;                   // its executions by time
let selTensor = -1, range = null, hover = -1, onlyPath = false;

// ---- colours

let P = {};
const HUE = [214, 28, 140, 276, 190, 178];  // Tensor, Scalar, Vector, GpSimd, Sync, DMA
const hash = s => { let h = 7; for (let i = 0; i < s.length; i++) h = (h * 31 + s.charCodeAt(i)) >>> 0; return h; };
let opColour = [];
function colours() {
  const css = getComputedStyle(document.documentElement), v = n => css.getPropertyValue("--" + n).trim();
  P = {bg: v("bg"), panel: v("panel"), fg: v("fg"), dim: v("dim"), line: v("line"), accent: v("accent"), sel: v("sel"), wait: v("wait"), crit: v("crit")};
  const l = parseFloat(v("l")), s = parseFloat(v("s"));
  P.kind = HUE.map(h => `hsl(${h} ${s}% ${l}%)`);
  P.soft = HUE.map(h => `hsl(${h} ${s}% ${l}% / .38)`);
  // Instructions of one engine differ a little in hue and lightness.
  opColour = D.tracks.map(t => new Map());
  P.of = (track, op) => {
    let c = opColour[track].get(op);
    if (!c) {
      const h = hash(D.strings[op]), k = D.tracks[track].kind;
      cx.fillStyle = `hsl(${HUE[k] + (h % 5 - 2) * 7} ${s}% ${l + ((h >> 4) % 5 - 2) * 4}%)`;
      opColour[track].set(op, c = cx.fillStyle);  // as #rrggbb, which is read faster
    }
    return c;
  };
}

// ---- layout

function visibleRows() {
  const list = [];
  let y = RULER;
  for (const g of groups) {
    list.push({kind: "group", g, h: GROUP, y});
    g.y = y;
    y += GROUP;
    if (g.open) for (const r of g.rows) { r.y = y; r.g = g; list.push(r); y += r.h; }
  }
  list.height = y;
  return list;
}
let rows = visibleRows();
function relayout() { rows = visibleRows(); scrollTo(scrollY); }
function scrollTo(y) { scrollY = Math.max(0, Math.min(y, rows.height - high)); redraw(); }

let wide = 1, high = 1;              // of the canvas, read once a drawing
const W = () => wide - LEFT;
const X = t => LEFT + (t - t0) * W() / (t1 - t0);
const T = x => t0 + (x - LEFT) * (t1 - t0) / W();

// ---- parts

function step125(x) { const p = Math.pow(10, Math.floor(Math.log10(x))); const m = x / p; return p * (m > 5 ? 10 : m > 2 ? 5 : m > 1 ? 2 : 1); }
function ruler(w, h) {
  const st = step125((t1 - t0) / Math.max(2, W() / 110));
  cx.fillStyle = P.panel; cx.fillRect(0, 0, w, RULER);
  cx.textAlign = "left";
  for (let t = Math.ceil(t0 / st) * st; t <= t1; t += st) {
    const x = Math.round(X(t)) + .5;
    if (x < LEFT) continue;
    cx.fillStyle = P.line; cx.fillRect(x, RULER, 1, h);
    cx.fillStyle = P.dim; cx.fillText(st >= 1e5 ? +(t / 1e6).toFixed(3) + " ms" : st >= 100 ? +(t / 1000).toFixed(3) + " us" : +t.toFixed(1) + " ns", x + 3, RULER / 2);
  }
}

// Columns that stand on y + h, x from 0 on; neighbours of one height are one rectangle.
function columns(from, y, h, height) {
  const w = Math.ceil(W());
  let x0 = from, now = 0;
  for (let x = from; x <= w; x++) {
    const v = x < w ? Math.ceil(height(x) * 2) / 2 : 0;
    if (v === now) continue;
    if (now > 0) cx.fillRect(LEFT + x0, y + h - now, x - x0, now);
    x0 = x;
    now = v;
  }
}

// How much of each pixel's time is covered.
function drawCoverage(l, y, h, paint) {
  const dt = (t1 - t0) / W(), last = l.e[l.e.length - 1];
  cx.fillStyle = paint;
  columns(Math.max(0, Math.floor(X(l.s[0]) - LEFT)), y, h, x => {
    const a = t0 + x * dt, f = a > last ? 0 : covered(l, a, a + dt) / dt;
    return f > .004 ? Math.max(1, f * h) : 0;
  });
}

// Many parts of the critical path: each pixel has the colour of who is on it in its middle.
function drawPath(l, y, h) {
  const w = Math.ceil(W()), dt = (t1 - t0) / W(), last = l.e[l.e.length - 1];
  let x0 = 0, now = -1;
  for (let x = 0; x <= w; x++) {
    const t = t0 + (x + .5) * dt, k = x < w && t <= last ? upper(l.s, t) - 1 : -1, kind = k < 0 ? -1 : D.tracks[evTrack[l.idx[k]]].kind;
    if (kind === now && x < w) continue;
    if (now >= 0) { cx.fillStyle = P.kind[now]; cx.fillRect(LEFT + x0, y, x - x0, h); }
    x0 = x;
    now = kind;
  }
}

function drawLane(l, y, h) {
  const n = l.idx.length;
  if (!n) return;
  const i0 = upper(l.e, t0), i1 = lower(l.s, t1), w = W(), scale = w / (t1 - t0);
  const path = l.kind === "critical", dma = !path && isDma(l.track);
  const top = y + 3, hh = h - 6;
  if (i1 - i0 > w / 2) {
    if (path) drawPath(l, top, hh); else drawCoverage(l, top, hh, P.kind[D.tracks[l.track].kind]);
    if (mark) drawMarks(l, i0, i1, top, hh);
    return;
  }
  for (let k = i0; k < i1; k++) {
    const i = l.idx[k], ins = evIns[i], op = D.ins_op[ins];
    const x0 = LEFT + (l.s[k] - t0) * scale, x1 = LEFT + (l.e[k] - t0) * scale;
    const xa = Math.max(x0, LEFT), ww = Math.max(Math.min(x1, wide) - xa, .8);
    if (!dma && !path && evWait[i] > 0) {
      const q = Math.max(LEFT, X(Math.max(l.s[k] - evWait[i], k ? l.e[k - 1] : 0)));
      if (x0 - q > 1) { cx.fillStyle = P.wait; cx.globalAlpha = .28; cx.fillRect(q, top + hh * .38, x0 - q, hh * .24); cx.globalAlpha = 1; }
    }
    const dimmed = mark && !mark[ins] || onlyPath && !isCritical[i];
    if (dimmed) cx.globalAlpha = .16;
    if (dma && evIssued[i] > evStart[i]) {  // descriptors, then data
      const xm = Math.max(LEFT, Math.min(X(evIssued[i]), xa + ww));
      cx.fillStyle = P.soft[5]; cx.fillRect(xa, top + hh * .3, xm - xa, hh * .4);
      cx.fillStyle = P.of(l.track, op); cx.fillRect(xm, top, Math.max(xa + ww - xm, .8), hh);
    } else {
      cx.fillStyle = P.of(evTrack[i], op); cx.fillRect(xa, top, ww, hh);
    }
    if (evFlags[i] & 1 && ww > 2) { cx.fillStyle = "#0004"; for (let x = xa + 2; x < xa + ww; x += 5) cx.fillRect(x, top, 1, hh); }
    if (!path && isCritical[i]) { cx.fillStyle = P.crit; cx.fillRect(xa, y + h - 3, ww, 2); }
    const xt = dma ? Math.max(LEFT, Math.min(X(evIssued[i]), xa + ww)) : xa;
    if (xa + ww - xt > 34 && !dimmed) {
      cx.save(); cx.beginPath(); cx.rect(xt, y, xa + ww - xt - 3, h); cx.clip();
      cx.fillStyle = "#fff"; cx.fillText((path ? D.tracks[evTrack[i]].name + " " : "") + D.strings[op], xt + 4, y + h / 2);
      cx.restore();
    }
    cx.globalAlpha = 1;
  }
}

// Highlighted executions in a view that shows coverage: a tick each, one a pixel at most.
function drawMarks(l, i0, i1, y, h) {
  cx.fillStyle = P.sel;
  let last = -1;
  for (const i of marked) {
    if (evTrack[i] !== l.track || evStart[i] < t0 || evStart[i] > t1) continue;
    const x = Math.round(X(evStart[i]));
    if (x !== last) { cx.fillRect(x, y, 1, h); last = x; }
  }
}

function drawSteps(r, y, h) {
  const st = r.steps, dt = (t1 - t0) / W(), top = r.top || Math.max(st.most, 1), hh = h - 5;
  if (!st.t.length) return;
  cx.fillStyle = r.unit ? P.kind[r.mem ? 1 : 2] : P.kind[4];
  cx.globalAlpha = .75;
  columns(Math.max(0, Math.floor(X(st.t[0]) - LEFT)), y, h - 1, x => {
    const a = t0 + x * dt, v = highest(st, a, a + dt);
    return v > 0 ? Math.max(1, v / top * hh) : 0;
  });
  cx.globalAlpha = 1;
}

// ---- memory by address: rectangles while they are few, else a picture of pixels

const tensorColour = [];
function colourOf(t) {
  if (tensorColour[t]) return tensorColour[t];
  const hue = hash(tensorName(t)) % 360, f = n => { const k = (n + hue / 30) % 12; return Math.round(255 * (.54 - .2 * Math.max(-1, Math.min(k - 3, 9 - k, 1)))); };
  const rgb = [f(0), f(8), f(4)];
  return tensorColour[t] = {css: `rgb(${rgb})`, word: (255 << 24 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0};
}
const areaY = (a, y, h) => y + 2 + (h - 4) * (1 - (a.at + a.size) / shown[a.mem]);
const raster = document.createElement("canvas");
function drawDense(list, y, h) {
  const w = Math.max(1, Math.floor(W())), g = raster.getContext("2d"), image = g.createImageData(w, h), px = new Uint32Array(image.data.buffer);
  raster.width = w; raster.height = h;
  const scale = W() / (t1 - t0);
  for (const a of list) {
    const x0 = Math.max(0, Math.floor((a.from - t0) * scale)), x1 = Math.min(w, Math.max(x0 + 1, Math.floor((a.to - t0) * scale)));
    const ya = Math.max(0, Math.floor(areaY(a, 0, h))), yb = Math.min(h, Math.max(ya + 1, Math.round(ya + (h - 4) * a.size / shown[a.mem])));
    const c = colourOf(a.tensor).word;
    for (let q = ya; q < yb; q++) px.fill(c, q * w + x0, q * w + x1);
  }
  g.putImageData(image, 0, 0);
  cx.drawImage(raster, LEFT, y, w, h);
}
function drawArea(a, y, h) {
  const x0 = Math.max(LEFT, X(a.from)), x1 = Math.min(wide, X(a.to)), ya = areaY(a, y, h);
  const hh = Math.max(1, (h - 4) * a.size / shown[a.mem]), on = a.tensor === selTensor;
  cx.fillStyle = on ? P.sel : colourOf(a.tensor).css;
  cx.globalAlpha = on || selTensor < 0 ? .9 : .35;
  cx.fillRect(x0, ya, Math.max(x1 - x0, .8), Math.max(hh - .5, .8));
  cx.globalAlpha = 1;
  if (hh > 13 && x1 - x0 > 60) { cx.save(); cx.beginPath(); cx.rect(x0, ya, x1 - x0 - 3, hh); cx.clip(); cx.fillStyle = "#fff"; cx.fillText(tensorName(a.tensor) + " " + D.tensors[a.tensor][1], x0 + 4, ya + hh / 2); cx.restore(); }
}
function drawMap(r, y, h) {
  cx.fillStyle = P.panel; cx.fillRect(LEFT, y + 2, W(), h - 4);
  const list = [];
  for (const a of r.list) { if (a.from > t1) break; if (a.to >= t0) list.push(a); }
  if (list.length > 1500) { drawDense(list, y, h); list.length = 0; if (selTensor >= 0) list.push(...r.list.filter(a => a.tensor === selTensor)); }
  for (const a of list) drawArea(a, y, h);
}

function label(r, y) {
  cx.fillStyle = P.bg; cx.fillRect(0, y, LEFT - 1, r.h);
  if (r === row) { cx.fillStyle = P.accent; cx.globalAlpha = .16; cx.fillRect(0, y, LEFT - 1, r.h); cx.globalAlpha = 1; }
  cx.fillStyle = r.kind === "critical" ? P.crit : P.fg;
  cx.fillText(r.label, 22, y + r.h / 2 + .5, LEFT - (r.kind === "critical" ? 26 : 84));
  let text = "";
  const span = t1 - t0;
  if (r.kind === "critical") text = "";
  else if (r.kind === "lane") { const p = 100 * covered(r, t0, t1) / span; text = p >= 99.95 ? "100%" : p.toFixed(1) + "%"; }
  else if (r.kind === "map") text = bytes(shown[r.mem]);
  else if (r.kind === "steps") { const v = highest(r.steps, t0, t1); text = r.unit ? bytes(v) : "max " + v; }
  cx.textAlign = "right"; cx.fillStyle = P.dim; cx.fillText(text, LEFT - 8, y + r.h / 2 + .5); cx.textAlign = "left";
}

function rowOf(i) {
  for (const r of rows) if (r.kind === "lane" && r.track === evTrack[i]) { const k = lower(r.s, evStart[i]); if (r.idx[k] === i) return r; for (let m = k; m < r.s.length && r.s[m] === evStart[i]; m++) if (r.idx[m] === i) return r; }
  return null;
}
function link(from, to, paint, dashed) {
  const a = rowOf(from), b = rowOf(to);
  if (!a || !b) return;
  const x0 = X(evEnd[from]), x1 = X(evStart[to]), y0 = a.y + a.h / 2 - scrollY, y1 = b.y + b.h / 2 - scrollY, bend = Math.max(18, Math.abs(x1 - x0) / 2);
  cx.strokeStyle = paint; cx.lineWidth = 1.6; cx.setLineDash(dashed ? [4, 3] : []);
  cx.beginPath(); cx.moveTo(x0, y0); cx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1); cx.stroke(); cx.setLineDash([]);
  cx.fillStyle = paint; cx.beginPath(); cx.moveTo(x1, y1); cx.lineTo(x1 - 6, y1 - 3.5); cx.lineTo(x1 - 6, y1 + 3.5); cx.fill();
}
const LINKS = 40;
function drawSelection() {
  if (sel < 0) return;
  const r = rowOf(sel);
  if (evFrom[sel] >= 0) link(evFrom[sel], sel, P.wait, false);
  for (let k = succFirst[sel]; k < succFirst[sel + 1] && k < succFirst[sel] + LINKS; k++) link(sel, succ[k], P.accent, true);
  if (!r) return;
  const x = X(evStart[sel]), w = Math.max(X(until(sel)) - x, 2);
  cx.strokeStyle = P.sel; cx.lineWidth = 2; cx.strokeRect(x, r.y - scrollY + 2, w, r.h - 4);
}

function draw() {
  const ratio = devicePixelRatio || 1, w = wide = cv.clientWidth, h = high = cv.clientHeight;
  if (!w || !h) return;
  LEFT = w < 620 ? 120 : 190;
  for (const [el, hh] of [[cv, h], [ov, ov.clientHeight]]) {
    const pw = Math.round(w * ratio), ph = Math.round(hh * ratio);
    if (el.width !== pw || el.height !== ph) { el.width = pw; el.height = ph; over.stale = true; }
  }
  cx.setTransform(ratio, 0, 0, ratio, 0, 0);
  cx.fillStyle = P.bg; cx.fillRect(0, 0, w, h);
  cx.font = "11.5px system-ui,sans-serif"; cx.textBaseline = "middle";
  ruler(w, h);
  cx.save(); cx.beginPath(); cx.rect(0, RULER, w, h); cx.clip();
  for (const r of rows) {
    const y = r.y - scrollY;
    if (y + r.h < RULER || y > h) continue;
    if (r.kind === "group") {
      cx.fillStyle = P.panel; cx.fillRect(0, y, w, r.h);
      if (r.g === row) { cx.fillStyle = P.accent; cx.globalAlpha = .16; cx.fillRect(0, y, w, r.h); cx.globalAlpha = 1; }
      cx.fillStyle = P.dim; cx.fillText((r.g.open ? "\u25be  " : "\u25b8  ") + r.g.label, 8, y + r.h / 2);
      continue;
    }
    cx.fillStyle = P.line; cx.fillRect(0, y + r.h - .5, w, .5);
    cx.save(); cx.beginPath(); cx.rect(LEFT, y, w - LEFT, r.h); cx.clip();
    if (r.kind === "steps") drawSteps(r, y, r.h); else if (r.kind === "map") drawMap(r, y, r.h); else drawLane(r, y, r.h);
    cx.restore();
    label(r, y);
  }
  cx.save(); cx.beginPath(); cx.rect(LEFT, RULER, w - LEFT, h); cx.clip();
  drawSelection();
  cx.restore(); cx.restore();
  if (range) {
    const a = X(range[0]), b = X(range[1]);
    cx.fillStyle = P.accent; cx.globalAlpha = .13; cx.fillRect(a, 0, b - a, h); cx.globalAlpha = 1;
    cx.fillRect(a, 0, 1, h); cx.fillRect(b, 0, 1, h);
    const text = fmt(range[1] - range[0]), tw = cx.measureText(text).width + 10;
    cx.fillRect((a + b - tw) / 2, 2, tw, RULER - 4); cx.fillStyle = P.bg; cx.textAlign = "center"; cx.fillText(text, (a + b) / 2, RULER / 2); cx.textAlign = "left";
  }
  if (rows.height > h) { const f = h / rows.height; cx.fillStyle = P.dim; cx.globalAlpha = .45; cx.fillRect(w - 5, RULER + (h - RULER) * scrollY / rows.height, 4, (h - RULER) * f); cx.globalAlpha = 1; }
  overview();
}

// ---- the whole run, small: one stripe an engine, and the window that is shown

const over = {stale: true, canvas: document.createElement("canvas")};
const overT = x => Math.max(0, Math.min(end, x / ov.clientWidth * end));
function overview() {
  const ratio = devicePixelRatio || 1, w = ov.clientWidth, h = ov.clientHeight;
  if (over.stale) {
    over.stale = false;
    over.canvas.width = ov.width; over.canvas.height = ov.height;
    const g = over.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = P.panel; g.fillRect(0, 0, w, h);
    const list = D.tracks.map((t, k) => k), each = h / Math.max(1, list.length), dt = end / w;
    list.forEach((k, n) => {
      g.fillStyle = P.kind[D.tracks[k].kind];
      for (let x = 0; x < w; x++) {
        let f = 0;
        for (const l of lanes[k]) f = Math.max(f, covered(l, x * dt, (x + 1) * dt) / dt);
        if (f > .01) { g.globalAlpha = .25 + .75 * Math.min(1, f); g.fillRect(x, n * each + .5, 1, Math.max(1, each - 1)); }
      }
      g.globalAlpha = 1;
    });
  }
  ox.setTransform(1, 0, 0, 1, 0, 0); ox.drawImage(over.canvas, 0, 0);
  ox.setTransform(ratio, 0, 0, ratio, 0, 0);
  const a = t0 / end * w, b = t1 / end * w;
  ox.fillStyle = P.bg; ox.globalAlpha = .62; ox.fillRect(0, 0, a, h); ox.fillRect(b, 0, w - b, h); ox.globalAlpha = 1;
  ox.strokeStyle = P.accent; ox.lineWidth = 1.5; ox.strokeRect(a + .75, .75, Math.max(2, b - a - 1.5), h - 1.5);
}

let pending = 0;
function redraw() { if (!pending) pending = requestAnimationFrame(() => { pending = 0; draw(); }); }
function view(a, b) {
  const w = Math.min(Math.max(b - a, 1), end * 1.04);
  a = Math.min(Math.max(a, -.02 * end), 1.02 * end - w);
  t0 = a; t1 = a + w;
  redraw();
}
const zoom = (f, t) => view(t - (t - t0) * f, t + (t1 - t) * f);
const pan = f => view(t0 + (t1 - t0) * f, t1 + (t1 - t0) * f);
function reveal(i) {
  const w = t1 - t0, len = until(i) - evStart[i];
  if (len > w * .9) view(evStart[i] - len * .2, until(i) + len * .2);
  else if (evStart[i] < t0 + w * .02 || until(i) > t1 - w * .02) view(evStart[i] + len / 2 - w / 2, evStart[i] + len / 2 + w / 2);
  const g = groups.find(q => q.rows.some(r => r.kind === "lane" && r.track === evTrack[i]));
  if (g && !g.open) { g.open = true; relayout(); }
  const r = rowOf(i);
  if (r) { if (r.y - scrollY < RULER) scrollTo(r.y - RULER); else if (r.y + r.h - scrollY > high) scrollTo(r.y + r.h - high + 8); }
}
