// Mouse, touch and keys; then the first drawing.

// ---- what is under the pointer

function rowAt(y) { y += scrollY; for (const r of rows) if (y >= r.y && y < r.y + r.h) return r; return null; }
function eventAt(r, x) {
  if (!r || (r.kind !== "lane" && r.kind !== "critical") || !r.idx.length) return -1;
  const t = T(x), slack = 3 * (t1 - t0) / W();
  let k = upper(r.s, t) - 1, best = -1, far = slack;
  for (const m of [k, k + 1]) if (m >= 0 && m < r.idx.length) {
    const d = t < r.s[m] ? r.s[m] - t : t > r.e[m] ? t - r.e[m] : 0;
    if (d <= far) { far = d; best = r.idx[m]; }
  }
  return best;
}
function areaAt(r, x, y) {
  const t = T(x), yy = y - (r.y - scrollY);
  let best = null;
  for (const a of r.list) {
    if (a.from > t) break;
    if (a.to < t) continue;
    const ya = areaY(a, 0, r.h), hh = Math.max(3, (r.h - 4) * a.size / shown[a.mem]);
    if (yy >= ya - 1 && yy <= ya + hh + 1) best = a;
  }
  return best;
}

function tipText(r, x, y) {
  if (!r || x < LEFT || y < RULER) return "";
  if (r.kind === "map") { const a = areaAt(r, x, y); return a ? `${tensorName(a.tensor)} ${D.tensors[a.tensor][1]}\n${bytes(a.size)} of each of ${a.parts} partitions, ${fmt(a.to - a.from)}` : ""; }
  if (r.kind === "steps") return `${r.label}: ${r.unit ? bytes(valueAt(r.steps, T(x))) + " of " + bytes(capacity(r.mem)) : valueAt(r.steps, T(x))} at ${fmt(T(x))}`;
  const i = eventAt(r, x);
  if (i < 0) return "";
  const ins = evIns[i];
  return `${opOf(ins)}  ${fmt(until(i) - evStart[i])} at ${fmt(evStart[i])}\n${textOf(ins)}\n${lineText(insFile[ins], insLine[ins])}` + (evWait[i] > 0 ? `\nstood still for ${fmt(evWait[i])}` + (evFrom[i] >= 0 ? `, for ${opOf(evIns[evFrom[i]])} on ${trackName(evTrack[evFrom[i]])}` : "") : "");
}
function tip(e) {
  const r = rowAt(e.offsetY), text = tipText(r, e.offsetX, e.offsetY), box = $("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const dy = $("stage").offsetTop;
  box.style.left = Math.max(4, Math.min(e.offsetX + 14, cv.clientWidth - box.offsetWidth - 8)) + "px";
  box.style.top = (e.offsetY + dy + 18 + box.offsetHeight > cv.clientHeight + dy ? e.offsetY + dy - box.offsetHeight - 8 : e.offsetY + dy + 18) + "px";
}

// ---- pointer

let drag = null;
const fingers = new Map();
cv.addEventListener("pointerdown", e => {
  if (e.button) return;
  fingers.set(e.pointerId, e.offsetX);
  cv.setPointerCapture(e.pointerId);
  drag = {x: e.offsetX, y: e.offsetY, t0, t1, scrollY, moved: false, range: (e.shiftKey || e.offsetY < RULER) && e.offsetX > LEFT, pinch: fingers.size > 1 ? [...fingers.values()] : null};
});
cv.addEventListener("pointermove", e => {
  if (!drag) { tip(e); return; }
  fingers.set(e.pointerId, e.offsetX);
  $("tip").hidden = true;
  if (drag.pinch && fingers.size > 1) {
    const [a, b] = drag.pinch, [c, d] = [...fingers.values()], f = Math.abs(a - b) / Math.max(12, Math.abs(c - d)), w = (drag.t1 - drag.t0) * f, mid = drag.t0 + ((a + b) / 2 - LEFT) / W() * (drag.t1 - drag.t0);
    view(mid - ((c + d) / 2 - LEFT) / W() * w, mid + (1 - ((c + d) / 2 - LEFT) / W()) * w);
    drag.moved = true;
    return;
  }
  const dx = e.offsetX - drag.x, dy = e.offsetY - drag.y;
  if (Math.abs(dx) + Math.abs(dy) > 3) drag.moved = true;
  if (!drag.moved) return;
  if (drag.range) { const a = T(drag.x), b = T(Math.max(LEFT, e.offsetX)); range = [Math.min(a, b), Math.max(a, b)]; redraw(); return; }
  const d = dx * (drag.t1 - drag.t0) / W();
  view(drag.t0 - d, drag.t1 - d);
  scrollTo(drag.scrollY - dy);
});
function drop(e) {
  fingers.delete(e.pointerId);
  const d = drag;
  drag = null;
  if (!d || e.type === "pointercancel") return;
  if (d.range && d.moved) { sel = -1; showTab("details"); say("range of " + fmt(range[1] - range[0])); return; }
  if (!d.moved) click(e);
}
cv.addEventListener("pointerup", drop);
cv.addEventListener("pointercancel", drop);
cv.addEventListener("pointerleave", () => { $("tip").hidden = true; });
function click(e) {
  const r = rowAt(e.offsetY);
  if (!r || e.offsetY < RULER) { if (range) { range = null; showTab(tab); redraw(); } return; }
  if (r.kind === "group") { toggle(r.g); return; }
  row = r;
  if (r.kind === "map") { const a = areaAt(r, e.offsetX, e.offsetY); if (a) selectTensor(a.tensor); redraw(); return; }
  const i = e.offsetX >= LEFT ? eventAt(r, e.offsetX) : -1;
  if (i >= 0) select(i, r.kind === "critical"); else { sel = -1; range = null; showTab(tab); redraw(); }
}
cv.addEventListener("dblclick", e => { const i = eventAt(rowAt(e.offsetY), e.offsetX); if (i >= 0) zoomTo(i); });
cv.addEventListener("wheel", e => {
  e.preventDefault();
  const unit = e.deltaMode ? 30 : 1, dx = e.deltaX * unit, dy = e.deltaY * unit;
  if (e.ctrlKey || e.metaKey || e.altKey) zoom(Math.exp(dy * (e.ctrlKey && Math.abs(dy) < 40 ? .01 : .002)), T(Math.max(LEFT, e.offsetX)));
  else if (e.shiftKey || Math.abs(dx) > Math.abs(dy)) pan((dx || dy) / W());
  else if (rows.height > cv.clientHeight && e.offsetY > RULER) scrollTo(scrollY + dy);
  else zoom(Math.exp(dy * .002), T(Math.max(LEFT, e.offsetX)));
}, {passive: false});
let overDrag = false;
function overTo(e) { const w = t1 - t0, t = overT(e.offsetX); view(t - w / 2, t + w / 2); }
ov.addEventListener("pointerdown", e => { overDrag = true; ov.setPointerCapture(e.pointerId); overTo(e); });
ov.addEventListener("pointermove", e => { if (overDrag) overTo(e); });
ov.addEventListener("pointerup", () => { overDrag = false; });
ov.addEventListener("wheel", e => { e.preventDefault(); zoom(Math.exp(e.deltaY * .002), overT(e.offsetX)); }, {passive: false});

// ---- steps from one thing to the next

function toggle(g) { g.open = !g.open; relayout(); say(g.label + (g.open ? " open" : " closed")); }
function zoomTo(i) { const w = until(i) - evStart[i]; view(evStart[i] - w * 1.5 - 10, until(i) + w * 1.5 + 10); }
function neighbour(by) {
  if (marked && marked.length) {
    let k = sel >= 0 ? marked.indexOf(sel) : -1;
    k = k < 0 ? (by > 0 ? 0 : marked.length - 1) : Math.max(0, Math.min(marked.length - 1, k + by));
    select(marked[k], true);
    return;
  }
  const r = sel >= 0 ? rowOf(sel) : row && row.idx && row.idx.length ? row : rows.find(q => q.kind === "lane" && q.idx.length);
  if (!r) return;
  const k = sel >= 0 ? r.idx.indexOf(sel) + by : Math.min(r.idx.length - 1, lower(r.s, t0));
  if (k >= 0 && k < r.idx.length) select(r.idx[k], true);
}
function rowStep(by) {
  let k = row ? rows.findIndex(r => r === row || r.g === row && r.kind === "group") : -1;
  k = Math.max(0, Math.min(rows.length - 1, k + by));
  const r = rows[k];
  row = r.kind === "group" ? r.g : r;
  if (r.y - scrollY < RULER) scrollTo(r.y - RULER); else if (r.y + r.h - scrollY > cv.clientHeight) scrollTo(r.y + r.h - cv.clientHeight);
  say(r.kind === "group" ? r.g.label + (r.g.open ? ", open" : ", closed") : (r.label || trackName(r.track)) + ", row");
  redraw();
}
function enter() {
  if (!row) return;
  if (row.rows) { toggle(row); return; }
  if (row.kind === "map") {
    const list = row.list.filter(a => a.from < t1 && a.to > t0), k = list.findIndex(a => a.tensor === selTensor);
    if (list.length) selectTensor(list[(k + 1) % list.length].tensor);
  } else if (row.idx) { const i = eventAt(row, (LEFT + cv.clientWidth) / 2); const k = i >= 0 ? i : row.idx[Math.min(row.idx.length - 1, lower(row.s, (t0 + t1) / 2))]; if (k !== undefined) select(k, true); }
}
function measureSelected() { if (sel >= 0) { range = [evStart[sel], until(sel)]; const i = sel; sel = -1; showTab("details"); sel = i; redraw(); } }

const KEYS = [
  ["Timeline", [
    ["\u2190 \u2192, a d", "move in time", {"a": () => pan(-.2), "d": () => pan(.2)}],
    ["+ \u2212, w s", "zoom in and out, at the selection", {"+": () => zoom(.7, centre()), "=": () => zoom(.7, centre()), "w": () => zoom(.7, centre()), "-": () => zoom(1 / .7, centre()), "s": () => zoom(1 / .7, centre())}],
    ["0", "everything", {"0": () => view(0, end)}],
    ["f", "zoom to the selection, or to the measured range", {"f": () => range ? view(range[0], range[1]) : sel >= 0 && zoomTo(sel)}],
    ["\u2191 \u2193", "choose a row", {}],
    ["Enter", "open or close a group; select in a row", {}],
    ["m", "measure the selection's time in all rows (or drag with Shift)", {"m": measureSelected}]]],
  ["Selection", [
    ["n p", "next and previous: of the highlighted ones, else of the row", {"n": () => neighbour(1), "p": () => neighbour(-1)}],
    ["b", "back to what it waited for", {"b": () => sel >= 0 && evFrom[sel] >= 0 && select(evFrom[sel], true)}],
    ["v", "forward to the first that waited for it", {"v": () => sel >= 0 && succFirst[sel] < succFirst[sel + 1] && select(succ[succFirst[sel]], true)}],
    ["l", "highlight all executions of its line", {"l": () => sel >= 0 && selectLine(insFile[evIns[sel]], insLine[evIns[sel]])}],
    ["c", "critical path only", {"c": () => $("path").click()}],
    ["/", "find by name, operand, line number or file:line", {"/": () => $("search").focus()}],
    ["Esc", "nothing selected", {"Escape": clearAll}]]],
  ["Page", [
    ["1 \u2026 8", "tables", Object.fromEntries(TABS.map((t, k) => [String(k + 1), () => { showTab(t[0]); $("tab-" + t[0]).focus(); }]))],
    ["g", "to the timeline", {"g": () => cv.focus()}],
    ["o", "to the source; there \u2191 \u2193 go through lines that ran, Enter highlights one", {"o": () => $("src").focus()}],
    ["t", "light, dark, as the system", {"t": () => $("theme").click()}],
    ["?", "this list", {"?": () => $("help").click()}]]],
];
const centre = () => sel >= 0 && evStart[sel] > t0 && evStart[sel] < t1 ? evStart[sel] : (t0 + t1) / 2;
const keyOf = Object.assign({}, ...KEYS.flatMap(k => k[1].map(r => r[2])));
cv.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const f = {ArrowLeft: () => pan(-.2), ArrowRight: () => pan(.2), ArrowUp: () => rowStep(-1), ArrowDown: () => rowStep(1), Enter: enter, " ": enter, PageUp: () => pan(-.9), PageDown: () => pan(.9), Home: () => view(0, t1 - t0), End: () => view(end - (t1 - t0), end)}[e.key];
  if (f) { e.preventDefault(); f(); }
});
document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
  if (/^(INPUT|SELECT)$/.test(e.target.tagName)) return;
  const f = keyOf[e.key];
  if (f) { e.preventDefault(); f(); }
});

// ---- source

$("src").addEventListener("click", e => { const d = e.target.closest("#src div"); if (d && d.classList.contains("has")) selectLine(file, +d.id.slice(1)); });
$("src").addEventListener("keydown", e => {
  const all = [...document.querySelectorAll("#src .has")], k = all.findIndex(d => d.id === "L" + srcAt);
  if (e.key === "Enter" && k >= 0) selectLine(file, srcAt);
  else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && all.length) atLine(+all[Math.max(0, Math.min(all.length - 1, k + (e.key === "ArrowDown" ? 1 : -1)))].id.slice(1), true);
  else return;
  e.preventDefault();
});
$("file").innerHTML = D.files.map((f, k) => `<option value="${k}">${esc(f[0])}</option>`).join("");
$("file").addEventListener("change", () => showFile(+$("file").value));
$("metric").value = metric;
$("metric").addEventListener("change", () => { metric = +$("metric").value; showFile(file); if (markedLine.f === file) light(file, markedLine.l, false); });

// ---- find

$("search").addEventListener("input", () => find($("search").value));
$("search").addEventListener("keydown", e => {
  if (e.key === "Enter" && marked) { e.preventDefault(); neighbour(e.shiftKey ? -1 : 1); }
  else if (e.key === "Escape") { clearAll(); cv.focus(); }
});

// ---- tables

$("tabs").innerHTML = TABS.map((t, k) => `<button role="tab" id="tab-${t[0]}" aria-controls="pane" title="${k + 1}">${t[1]}${t[3] ? ` <sup>${t[3]}</sup>` : ""}</button>`).join("");
$("tabs").addEventListener("click", e => { const b = e.target.closest("button"); if (b) showTab(b.id.slice(4)); });
$("tabs").addEventListener("keydown", e => {
  const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
  if (!by) return;
  e.preventDefault();
  const k = TABS.findIndex(t => t[0] === tab), t = TABS[(k + by + TABS.length) % TABS.length][0];
  showTab(t);
  $("tab-" + t).focus();
});
$("pane").addEventListener("click", e => { const b = e.target.closest("button[data-a]"); if (b) actions[+b.dataset.a](); });
$("pane").addEventListener("keydown", e => {  // up and down through the buttons of a column
  if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
  const tr = e.target.closest("tr");
  if (!tr) return;
  let to = tr;
  do to = e.key === "ArrowDown" ? to.nextElementSibling : to.previousElementSibling; while (to && !to.querySelector("button"));
  if (to) { to.querySelector("button").focus(); e.preventDefault(); }
});

// ---- the page

$("all").onclick = () => view(0, end);
$("path").onclick = () => { onlyPath = !onlyPath; $("path").setAttribute("aria-pressed", onlyPath); redraw(); };
$("path").hidden = !D.critical.length;
$("help").onclick = () => {
  $("keys").innerHTML = "<div class=cols>" + KEYS.map(([name, list]) => `<table><thead><tr><th colspan="2">${name}</th></tr></thead><tbody>` + list.map(r => `<tr><td>${r[0].split(/(, | )/).map(k => /^(, | )$/.test(k) ? k : `<kbd>${k}</kbd>`).join("")}</td><td>${r[1]}</td></tr>`).join("") + "</tbody></table>").join("") + `</div><p class="note">The wheel scrolls rows, with Ctrl it zooms, with Shift it moves in time. Drag moves; dragging the ruler, or with Shift, measures; a double click zooms to an execution. The strip above the timeline is the whole run.</p><form method="dialog"><button autofocus>Close</button></form>`;
  $("keys").showModal();
};
const THEMES = ["", "light", "dark"];
function setTheme(t) {
  if (t) document.documentElement.dataset.theme = t; else delete document.documentElement.dataset.theme;
  $("theme").textContent = "Theme: " + (t || "system");
  colours(); over.stale = true; redraw();
}
$("theme").onclick = () => { const t = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "") + 1) % 3]; setTheme(t); say("theme " + (t || "as the system")); };
matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme || ""));

function splitter(id, name, size) {
  const el = $(id), set = p => { const v = Math.max(10, Math.min(80, p)); $("main").style.setProperty(name, v + "%"); el.setAttribute("aria-valuenow", Math.round(v)); };
  let now = size;
  el.setAttribute("aria-valuenow", size); el.setAttribute("aria-valuemin", 10); el.setAttribute("aria-valuemax", 80);
  const vertical = id === "vsplit";
  el.addEventListener("pointerdown", e => el.setPointerCapture(e.pointerId));
  el.addEventListener("pointermove", e => { if (!el.hasPointerCapture(e.pointerId)) return; const b = $("main").getBoundingClientRect(); now = vertical ? 100 * (b.right - e.clientX) / b.width : 100 * (b.bottom - e.clientY) / b.height; set(now); });
  el.addEventListener("keydown", e => { const by = e.key === (vertical ? "ArrowLeft" : "ArrowUp") ? 3 : e.key === (vertical ? "ArrowRight" : "ArrowDown") ? -3 : 0; if (by) { e.preventDefault(); now = Math.max(10, Math.min(80, now + by)); set(now); } });
}
splitter("vsplit", "--src", 38);
splitter("hsplit", "--low", 36);

document.title = D.kernel + " \u2013 nki profile";
$("title").innerHTML = esc(D.kernel) + ` <small>on ${esc(D.target)}${D.cores > 1 ? ", " + D.cores + " cores" : ""}, simulated${D.cut ? ", first " + count(N) + " executions" : ""}</small>`;
$("figures").innerHTML = [["total", fmt(metricOf("total_time", "ns"))], ["body", fmt(metricOf("body_time", "ns"))], ["MFU", unit(metricOf("mfu_estimated", "percent"), "percent")], ["MBU", unit(metricOf("mbu_estimated", "percent"), "percent")], ["DMA active", unit(metricOf("dma_active_time", "percent"), "percent")], ["instructions", count(N)]].map(f => `<div><dt>${f[0]}</dt><dd>${f[1]}</dd></div>`).join("");
wide = cv.clientWidth; high = cv.clientHeight;
setTheme("");
showFile(file);
{ const hot = D.lines.filter(l => l[0] === file).sort((a, b) => b[metric] - a[metric])[0]; if (hot) atLine(hot[1], true); }
showTab("details");
new ResizeObserver(() => { high = cv.clientHeight; scrollTo(scrollY); redraw(); }).observe(cv);
view(0, end);

// For tests: what the page shows, and how long drawing takes.
window.nki = {
  state: () => ({t0, t1, end, sel, marked: markCount, tab, file, line: +(document.querySelector("#src .on") || {id: "L0"}).id.slice(1), selLine: sel >= 0 ? insLine[evIns[sel]] : 0, row: row ? row.label || "" : "", rows: rows.map(r => r.label || r.g && r.g.label), range, theme: document.documentElement.dataset.theme || "", onlyPath, scrollY, events: N, selTensor}),
  place: i => { const r = rowOf(i); return r && {x: (X(evStart[i]) + X(until(i))) / 2, y: r.y + r.h / 2 - scrollY + $("stage").offsetTop}; },
  frame: n => { const ms = []; for (let k = 0; k < n; k++) { const w = end * Math.pow(.5, k % 16), a = (end - w) * ((k * 7919) % 100) / 100; t0 = a; t1 = a + w; const s = performance.now(); draw(); ms.push(performance.now() - s); } view(0, end); return ms; },
};
