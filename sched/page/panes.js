// Source, and the tables below the timeline.
const say = s => { $("say").textContent = s; };

// ---- source

let file = Math.max(0, D.files.findIndex((f, k) => D.lines.some(l => l[0] === k)));
let metric = D.critical.length ? 5 : 3, srcAt = -1;  // the line that the keyboard is on
const WORDS = /^(def|class|return|if|elif|else|for|while|in|and|or|not|is|import|from|as|with|assert|lambda|None|True|False|pass|raise|try|except|finally|break|continue)$/;
function coloured(s) {
  return s.replace(/(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([A-Za-z_]\w*)|([^#"'A-Za-z_]+|["'])/g, (m, c, q, word) =>
    c ? "<span class=c>" + esc(c) + "</span>" : q ? "<span class=s>" + esc(q) + "</span>" : word && WORDS.test(word) ? "<span class=k>" + word + "</span>" : esc(m));
}
function showFile(f) {
  file = f;
  $("file").value = f;
  const most = Math.max(1e-9, ...[...lineRows.values()].map(l => l[metric]));
  const text = D.files[f] ? D.files[f][1] : "";
  $("src").innerHTML = text ? text.replace(/\n$/, "").split("\n").map((s, k) => {
    const l = lineRows.get(lineKey(f, k + 1)), v = l ? l[metric] : 0;
    const title = l ? `${count(l[2])} executions\nbusy ${fmt(l[3])}\nwaiting ${fmt(l[4])}\ncritical path ${fmt(l[5])}` : "";
    return `<div id="L${k + 1}" role="option" aria-selected="false" class="${l ? "has" : ""}" title="${esc(title)}"><i>${k + 1}</i><i class="bar" style="background:linear-gradient(90deg,color-mix(in srgb,var(${metric === 5 ? "--crit" : metric === 4 ? "--wait" : "--accent"}) 34%,transparent) ${100 * v / most}%,transparent 0)">${l && v >= .05 ? fmt(v) : ""}</i><span>${coloured(s)}</span></div>`;
  }).join("") : "<p class=note>&nbsp; The text of this file is not in the program.</p>";
}
function light(f, l, scroll) {
  if (f < 0 || !l) return;
  if (f !== file) showFile(f);
  document.querySelectorAll("#src .on").forEach(x => { x.classList.remove("on"); x.setAttribute("aria-selected", "false"); });
  const el = $("L" + l);
  if (!el) return;
  el.classList.add("on"); el.setAttribute("aria-selected", "true");
  atLine(l, scroll);
}
function atLine(l, scroll) {
  document.querySelectorAll("#src .at").forEach(x => x.classList.remove("at"));
  const el = $("L" + l);
  if (!el) return;
  srcAt = l;
  el.classList.add("at");
  $("src").setAttribute("aria-activedescendant", el.id);
  if (scroll) { const box = $("src").getBoundingClientRect(), r = el.getBoundingClientRect(); if (r.top < box.top + 40 || r.bottom > box.bottom - 40) el.scrollIntoView({block: "center"}); }
}

// ---- highlights

function setMark(fits) {
  if (!fits) { mark = marked = null; markCount = 0; redraw(); return; }
  mark = new Uint8Array(NI);
  for (let i = 0; i < NI; i++) mark[i] = fits(i) ? 1 : 0;
  marked = [];
  for (let i = 0; i < N; i++) if (mark[evIns[i]]) marked.push(i);
  marked.sort((a, b) => evStart[a] - evStart[b]);
  markCount = marked.length;
  redraw();
}
const markedLine = {f: -1, l: 0};
function selectLine(f, l) {
  markedLine.f = f; markedLine.l = l;
  light(f, l, false);
  setMark(i => insFile[i] === f && insLine[i] === l);
  sel = -1; selTensor = -1;
  showTab("details");
  say(`line ${l}: ${markCount} executions`);
  if (markCount && !marked.some(i => evStart[i] < t1 && until(i) > t0)) reveal(marked[0]);
}

// ---- selection

function select(i, move) {
  sel = i; selTensor = -1; range = null;
  const ins = evIns[i];
  if (mark && !mark[ins]) { setMark(null); markedLine.f = -1; }
  row = rowOf(i) || row;
  light(insFile[ins], insLine[ins], true);
  if (move) reveal(i);
  row = rowOf(i) || row;
  showTab("details");
  say(`${opOf(ins)} on ${trackName(evTrack[i])}, ${fmt(until(i) - evStart[i])}, line ${insLine[ins]}` + (evWait[i] > 0 ? `, waited ${fmt(evWait[i])}` : ""));
  redraw();
}
function selectTensor(t) {
  selTensor = t; sel = -1; setMark(null);
  light(D.tensors[t][2], D.tensors[t][3], true);
  showTab("details");
  say(tensorName(t));
}
function selectInstr(ins) {
  const i = firstEvent[ins];
  if (i < 0) return;
  setMark(k => insFile[k] === insFile[ins] && insLine[k] === insLine[ins]);
  select(i, true);
}
function clearAll() { sel = -1; row = null; selTensor = -1; range = null; markedLine.f = -1; setMark(null); $("search").value = ""; $("found").textContent = ""; document.querySelectorAll("#src .on").forEach(x => x.classList.remove("on")); showTab(tab); }

// ---- tables

let actions = [];
const act = (text, fn, title) => `<button data-a="${actions.push(fn) - 1}"${title ? ` title="${esc(title)}"` : ""}>${text}</button>`;
const ROWS = 400;
const sorts = {};
// cols: [title, kind ("n": number), text of a row, value of a row to sort by]
function table(id, cols, list) {
  const s = sorts[id];
  if (s) list = list.slice().sort((a, b) => { const x = cols[s.k][3](a), y = cols[s.k][3](b); return (x < y ? -1 : x > y ? 1 : 0) * (s.down ? -1 : 1); });
  const head = cols.map((c, k) => `<th class="${c[1]}"${s && s.k === k ? ` aria-sort="${s.down ? "descending" : "ascending"}"` : ""}>${c[3] ? act(esc(c[0]) + (s && s.k === k ? s.down ? " \u25be" : " \u25b4" : ""), () => { sorts[id] = {k, down: s && s.k === k ? !s.down : c[1] === "n"}; showTab(tab); }) : esc(c[0])}</th>`).join("");
  const body = list.slice(0, ROWS).map(r => "<tr>" + cols.map(c => `<td class="${c[1]}">${c[2](r)}</td>`).join("") + "</tr>").join("");
  return `<table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>` + (list.length > ROWS ? `<p class="note">and ${count(list.length - ROWS)} more</p>` : "");
}
const pairs = list => "<table>" + list.filter(Boolean).map(([k, v]) => `<tr><td style="color:var(--dim)">${k}</td><td>${v}</td></tr>`).join("") + "</table>";
const lineButton = (f, l) => f >= 0 && l ? act(esc(lineText(f, l)), () => selectLine(f, l)) : "?";
const insButton = ins => act(esc(opOf(ins)), () => selectInstr(ins), textOf(ins));
const eventButton = i => act(esc(opOf(evIns[i])), () => select(i, true), textOf(evIns[i])) + ` on ${esc(trackName(evTrack[i]))}, ${esc(lineText(insFile[evIns[i]], insLine[evIns[i]]))}`;

function chain(ins) {
  const out = [];
  for (let p = D.ins_place[ins], n = 0; n < 64; n++) {
    const s = D.strings[D.place_label[p]];
    if (s) out.push(s);
    if (D.place_parent[p] === p) break;
    p = D.place_parent[p];
  }
  return out;
}
function eventDetails(i) {
  const ins = evIns[i], t = evTrack[i], from = evFrom[i], next = [];
  for (let k = succFirst[i]; k < succFirst[i + 1] && next.length < 8; k++) next.push(eventButton(succ[k]));
  const more = succFirst[i + 1] - succFirst[i] - next.length, sem = evSem[i] >= 0 ? D.semaphores[evSem[i]] : null;
  const where = chain(ins);
  return `<div class="cols">` + pairs([
    ["instruction", `<b>${esc(opOf(ins))}</b> <span class="tag">${esc(trackName(t))}</span>${isCritical[i] ? `<span class="tag" style="color:var(--crit)">critical path</span>` : ""}${evFlags[i] & 1 ? `<span class="tag">half clock</span>` : ""}${evFlags[i] & 2 ? `<span class="tag">table load</span>` : ""}`],
    ["operands", `<code>${esc(textOf(ins)).replace(/ (?=[a-z_0-9]+=)/g, "<br>")}</code>`],
    ["line", lineButton(insFile[ins], insLine[ins])],
    where.length && ["within", where.map(esc).join("<br>")]]) + pairs([
    ["start", fmt(evStart[i])],
    [isDma(t) ? "first byte after" : "next may start after", fmt(evIssued[i] - evStart[i])],
    ["complete after", fmt(evEnd[i] - evStart[i])],
    ["stood still before", evWait[i] > 0 ? `<b style="color:var(--wait)">${fmt(evWait[i])}</b>` : "0 ns"],
    ["waited for", from >= 0 ? eventButton(from) + (sem ? ` by semaphore s${sem.number}` : "") : "its own queue only"],
    ["waiting for it", next.length ? next.join("<br>") + (more > 0 ? `<br>and ${count(more)} more` : "") : "nobody"],
    ["number", `${count(i)} of ${count(N)} executions, instruction ${count(ins)}`]]) + "</div>";
}
function lineDetails() {
  const l = lineRows.get(lineKey(markedLine.f, markedLine.l)), by = new Map();
  for (const i of marked) { const k = trackName(evTrack[i]) + "\n" + opOf(evIns[i]), o = by.get(k) || [k, 0, 0, 0, i]; o[1]++; o[2] += until(i) - evStart[i]; o[3] += evWait[i]; by.set(k, o); }
  const src = (D.files[markedLine.f] || ["", ""])[1].split("\n")[markedLine.l - 1] || "";
  return `<p class="note">${esc(lineText(markedLine.f, markedLine.l))} &nbsp;<code>${esc(src.trim())}</code></p><div class="cols">` +
    (l ? pairs([["executions", count(l[2])], ["busy", fmt(l[3])], ["waiting", fmt(l[4])], ["critical path", fmt(l[5])]]) : "<p>Nothing of this line runs on the device.</p>") +
    table("lineops", [["instruction", "", r => act(esc(r[0].split("\n")[1]), () => select(r[4], true)), r => r[0]], ["on", "", r => esc(r[0].split("\n")[0])], ["executions", "n", r => count(r[1]), r => r[1]], ["busy", "n", r => fmt(r[2]), r => r[2]], ["waiting", "n", r => fmt(r[3]), r => r[3]]], [...by.values()]) + "</div>";
}
function tensorDetails(t) {
  const a = areas.find(x => x.tensor === t), d = D.tensors[t];
  return pairs([["tensor", `<b>${esc(tensorName(t))}</b> ${esc(d[1])}`], ["allocated in", lineButton(d[2], d[3])],
    a && ["memory", `${a.mem ? "PSUM" : "SBUF"}, partitions ${a.part} to ${a.part + a.parts - 1}, bytes ${count(a.at)} to ${count(a.at + a.size - 1)} of each (${bytes(a.size)})`],
    a && ["in use", `${fmt(a.from)} to ${fmt(a.to)}, ${fmt(a.to - a.from)}`]]);
}
function rangeDetails() {
  const [a, b] = range, w = b - a;
  const list = D.tracks.map((t, k) => {
    let busy = 0, n = 0, wait = 0;
    for (const l of lanes[k]) { busy += covered(l, a, b); const i = lower(l.s, a), j = lower(l.s, b); n += Math.max(0, j - i); wait += l.wait[j] - l.wait[Math.min(i, j)]; }
    return [trackName(k), busy, n, wait];
  });
  return `<p class="note">${fmt(a)} to ${fmt(b)}: <b>${fmt(w)}</b></p>` + table("range", [["row", "", r => esc(r[0]), r => r[0]], ["busy", "n", r => fmt(r[1]), r => r[1]], ["of the time", "n", r => (100 * r[1] / w).toFixed(1) + " %", r => r[1]], ["begun", "n", r => count(r[2]), r => r[2]], ["stood still", "n", r => fmt(r[3]), r => r[3]]], list);
}
function details() {
  if (range) return rangeDetails();
  if (sel >= 0) return eventDetails(sel);
  if (selTensor >= 0) return tensorDetails(selTensor);
  if (markedLine.f >= 0 && mark) return lineDetails();
  return `<p class="note">Select an execution in the timeline, a line of the source, or a piece of memory. Drag with <kbd>Shift</kbd> to measure a range.</p>` + findingsPane();
}
function findingsPane() {
  return D.findings.length ? table("find", [["finding", "", f => f[3].length ? act(esc(f[0]), () => selectInstr(f[3][0])) : esc(f[0]), f => f[0]], ["gains up to", "n", f => fmt(f[2]), f => f[2]], ["takes", "n", f => fmt(f[1]), f => f[1]], ["what to do", "wide", f => esc(coreTag(f[5]) + f[4])],
    ["lines", "", f => f[3].map(i => lineButton(insFile[i], insLine[i])).join(" ")]], D.findings) : "<p>No rule found anything.</p>";
}
function stallsPane() {
  return D.stalls.length ? table("stall", [["time lost", "n", s => fmt(s[3]), s => s[3]], ["instruction", "", s => insButton(s[0]), s => opOf(s[0])], ["line", "", s => lineButton(insFile[s[0]], insLine[s[0]]), s => insLine[s[0]]], ["executions", "n", s => count(s[2]), s => s[2]], ["longest", "n", s => fmt(s[4]), s => s[4]],
    ["waited for", "", s => s[1] >= 0 ? insButton(s[1]) : "?", s => s[1] >= 0 ? opOf(s[1]) : ""], ["its line", "", s => s[1] >= 0 ? lineButton(insFile[s[1]], insLine[s[1]]) : "", s => s[1]]], D.stalls) : "<p>No engine stood still.</p>";
}
function linesPane() {
  return table("lines", [["line", "", l => lineButton(l[0], l[1]), l => l[0] * 1e6 + l[1]], ["executions", "n", l => count(l[2]), l => l[2]], ["critical path", "n", l => fmt(l[5]), l => l[5]], ["busy", "n", l => fmt(l[3]), l => l[3]], ["waiting", "n", l => fmt(l[4]), l => l[4]],
    ["source", "wide", l => `<code>${esc(((D.files[l[0]] || ["", ""])[1].split("\n")[l[1] - 1] || "").trim().slice(0, 110))}</code>`]], [...lineRows.values()]);
}
function enginesPane() {
  const total = end;
  return table("engines", [["row", "", t => esc(coreTag(t.core) + t.name), t => t.name], ["active", "n", t => fmt(t.active), t => t.active], ["of the run", "n", t => (100 * t.active / total).toFixed(1) + " %", t => t.active], ["issuing", "n", t => fmt(t.busy), t => t.busy], ["stood still", "n", t => t.kind < 5 ? fmt(t.wait) : "", t => t.wait], ["critical path", "n", t => fmt(t.critical), t => t.critical], ["instructions", "n", t => count(t.count), t => t.count],
    ["bytes", "n", t => t.kind === 5 ? bytes(t.bytes) : "", t => t.bytes], ["a packet", "n", t => t.packets ? bytes(Math.round(t.bytes / t.packets)) : "", t => t.packets ? t.bytes / t.packets : 0], ["rate", "n", t => t.moving ? (t.bytes / t.moving).toFixed(1) + " GB/s" : "", t => t.moving ? t.bytes / t.moving : 0]], D.tracks);
}
function opsPane() {
  const by = new Map();
  for (let i = 0; i < N; i++) { const k = D.tracks[evTrack[i]].name + "\n" + opOf(evIns[i]); let o = by.get(k); if (!o) by.set(k, o = [k, 0, 0, 0]); o[1]++; o[2] += until(i) - evStart[i]; o[3] += evWait[i]; }
  return table("ops", [["instruction", "", r => act(esc(r[0].split("\n")[1]), () => find(r[0].split("\n")[1])), r => r[0].split("\n")[1]], ["on", "", r => esc(r[0].split("\n")[0]), r => r[0]], ["executions", "n", r => count(r[1]), r => r[1]], ["busy", "n", r => fmt(r[2]), r => r[2]], ["a piece", "n", r => fmt(r[2] / r[1]), r => r[2] / r[1]], ["stood still", "n", r => fmt(r[3]), r => r[3]]], [...by.values()].sort((a, b) => b[2] - a[2]));
}
const unit = (v, u) => v === null ? "not known" : u === "ns" ? fmt(v) : u === "percent" ? v.toFixed(2) + " %" : u === "bytes" ? bytes(Math.round(v)) : u === "count" ? count(Math.round(v)) : u === "flops_per_ns" ? v.toFixed(1) + " GFLOP/s" : u === "bytes_per_ns" ? v.toFixed(1) + " GB/s" : u === "flops" ? count(v) : v.toFixed(2);
function summaryPane() {
  const third = Math.ceil(D.summary.length / 3), part = k => D.summary.slice(k * third, (k + 1) * third);
  return `<div class="cols">` + [0, 1, 2].map(k => "<table>" + (D.cores > 1 ? "<thead><tr><th></th>" + D.tracks.map(t => t.core).filter((c, i, a) => a.indexOf(c) === i).map(c => `<th class="n">core ${c}</th>`).join("") + "</tr></thead>" : "") + "<tbody>" + part(k).map(m => `<tr><td>${esc(m[0])}</td>` + m.slice(2).map(v => `<td class="n">${unit(v, m[1])}</td>`).join("") + "</tr>").join("") + "</tbody></table>").join("") + "</div>";
}
const metricOf = (name, u, core) => { const m = D.summary.find(x => x[0] === name && x[1] === u); return m ? m[2 + (core || 0)] : null; };

function rooflinePane() {
  const R = D.roof, w = 440, h = 232, L = 60, B = 34, lo = -4, hi = 12, top = Math.log10(R.peak * 3), bot = top - 6;
  const x = v => L + (Math.log2(v) - lo) / (hi - lo) * (w - L - 12), y = v => 12 + (top - Math.log10(v)) / (top - bot) * (h - 12 - B);
  const clampY = v => Math.min(h - B, Math.max(12, y(Math.max(v, 1e-9))));
  let g = "";
  for (let k = lo; k <= hi; k += 2) g += `<line class="grid" x1="${x(2 ** k)}" x2="${x(2 ** k)}" y1="12" y2="${h - B}"/><text class="dim" text-anchor="middle" x="${x(2 ** k)}" y="${h - B + 15}">${k < 0 ? "1/" + 2 ** -k : 2 ** k}</text>`;
  for (let k = Math.ceil(bot); k <= top; k++) g += `<line class="grid" x1="${L}" x2="${w - 12}" y1="${y(10 ** k)}" y2="${y(10 ** k)}"/><text class="dim" text-anchor="end" x="${L - 6}" y="${y(10 ** k) + 4}">${10 ** k >= 1000 ? 10 ** k / 1000 + " TF/s" : 10 ** k + " GF/s"}</text>`;
  const roof = (bw, peak, cls) => { const r = peak / bw, a = Math.max(2 ** lo, 10 ** bot / bw); return `<polyline class="${cls}" points="${x(a)},${clampY(a * bw)} ${x(r)},${y(peak)} ${x(2 ** hi)},${y(peak)}"/>`; };
  g += roof(R.hbm, R.peak, "roof") + roof(R.hbm, R.fp32, "soft");
  g += `<text x="${w - 14}" y="${y(R.peak) - 6}" text-anchor="end">${(R.peak / 1000).toFixed(1)} TFLOP/s, 2-byte types</text><text class="dim" x="${w - 14}" y="${y(R.fp32) - 6}" text-anchor="end">${(R.fp32 / 1000).toFixed(1)} TFLOP/s, fp32</text>`;
  const rowsOut = [];
  for (let c = 0; c < D.cores; c++) {
    const ai = metricOf("mm_arithmetic_intensity", "ratio", c), body = metricOf("body_time", "ns", c), total = metricOf("total_time", "ns", c), fl = metricOf("model_flops", "flops", c);
    const ceiling = Math.min(R.peak, ai * R.hbm);
    rowsOut.push([c, ai, fl / body, fl / total, ceiling]);
    if (ai > 0) {
      const px = Math.min(w - 12, Math.max(L, x(ai)));
      g += `<line class="soft" x1="${px}" x2="${px}" y1="${clampY(ceiling)}" y2="${clampY(fl / body)}"/><circle class="dot" r="5" cx="${px}" cy="${clampY(fl / body)}"><title>body: ${(fl / body).toFixed(1)} GFLOP/s at ${ai.toFixed(2)} flops a byte</title></circle><circle class="dot2" r="4" cx="${px}" cy="${clampY(fl / total)}"><title>with launch and teardown: ${(fl / total).toFixed(1)} GFLOP/s</title></circle>`;
    }
  }
  const text = rowsOut.map(r => !(r[1] > 0) ? "<p>No multiplies: the kernel is bound by bytes and by its element-wise engines, and has no place under this roof.</p>" : pairs([[esc(coreTag(r[0])) + "flops a byte of HBM", r[1].toFixed(2)], ["balance of the machine", (R.peak / R.hbm).toFixed(1)], ["bound by", r[1] < R.peak / R.hbm ? "HBM bandwidth" : "the Tensor engine"], ["ceiling", (r[4] / 1000).toFixed(2) + " TFLOP/s"], ["reached in the body", `<b>${(r[2] / 1000).toFixed(3)} TFLOP/s</b>, ${(100 * r[2] / r[4]).toFixed(1)} % of the ceiling`], ["with launch and teardown", (r[3] / 1000).toFixed(3) + " TFLOP/s"]])).join("");
  return `<div class="cols"><svg id="roof" width="${w}" height="${h}" role="img" aria-label="Roofline: flops a second over flops a byte">${g}<text class="dim" x="${(w + L) / 2}" y="${h - 3}" text-anchor="middle">flops a byte of HBM traffic</text></svg><div>${text}<p class="note">Filled: body time. Open: with launch and teardown. Solid roof: 2-byte types; dashed: fp32.</p></div></div>`;
}

const TABS = [["details", "Details", details], ["findings", "Findings", findingsPane, D.findings.length], ["stalls", "Stalls", stallsPane, D.stalls.length], ["lines", "Lines", linesPane], ["engines", "Engines", enginesPane], ["ops", "Instructions", opsPane], ["roofline", "Roofline", rooflinePane], ["summary", "Summary", summaryPane]];
let tab = "details";
function showTab(id) {
  tab = id;
  actions = [];
  for (const t of TABS) { const b = $("tab-" + t[0]), on = t[0] === id; b.setAttribute("aria-selected", on); b.tabIndex = on ? 0 : -1; }
  $("pane").setAttribute("aria-labelledby", "tab-" + id);
  $("pane").innerHTML = TABS.find(t => t[0] === id)[2]();
  $("pane").scrollTop = 0;
}

// ---- find

function find(text) {
  $("search").value = text;
  const q = text.trim().toLowerCase();
  markedLine.f = -1;
  if (!q) { setMark(null); $("found").textContent = ""; return; }
  const at = /^(?:(.*):)?(\d+)$/.exec(q), hit = new Map();
  const fits = s => { let h = hit.get(s); if (h === undefined) hit.set(s, h = D.strings[s].toLowerCase().includes(q)); return h; };
  setMark(i => at ? insLine[i] === +at[2] && (!at[1] || fileName(insFile[i]).toLowerCase().includes(at[1])) : fits(D.ins_op[i]) || fits(D.ins_text[i]));
  $("found").textContent = count(markCount);
}
