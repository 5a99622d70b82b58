// The data as typed arrays, and what is derived from it once. Times are nanoseconds.
const $ = id => document.getElementById(id);
const D = JSON.parse($("data").textContent);
$("data").remove();

const N = D.ev_track.length, NI = D.ins_op.length;
const end = Math.max(D.end / 10, 1);
const evTrack = Uint8Array.from(D.ev_track), evIns = Uint32Array.from(D.ev_ins);
const evFlags = Uint8Array.from(D.ev_flags);
const evStart = new Float64Array(N), evIssued = new Float64Array(N), evEnd = new Float64Array(N);
const evWait = new Float64Array(N), evFrom = new Int32Array(N), evSem = Int32Array.from(D.ev_semaphore, v => v - 1);
for (let i = 0, t = 0; i < N; i++) {
  t = (i === D.core_events[1] ? 0 : t) + D.ev_start[i];
  evStart[i] = t / 10;
  evIssued[i] = (t + D.ev_issued[i]) / 10;
  evEnd[i] = (t + D.ev_end[i]) / 10;
  evWait[i] = D.ev_wait[i] / 10;
  evFrom[i] = D.ev_from[i] ? i - D.ev_from[i] : -1;
}
const insFile = Int32Array.from(D.ins_file), insLine = Uint32Array.from(D.ins_line);
for (const k of ["ev_track", "ev_ins", "ev_start", "ev_issued", "ev_end", "ev_wait", "ev_from", "ev_flags", "ev_semaphore", "ins_file", "ins_line"]) delete D[k];

const isDma = t => D.tracks[t].kind === 5;
const opOf = i => D.strings[D.ins_op[i]];
const textOf = i => D.strings[D.ins_text[i]];
const coreTag = c => D.cores > 1 ? "core " + c + " " : "";
const trackName = t => coreTag(D.tracks[t].core) + D.tracks[t].name;
const fileName = f => f >= 0 ? D.files[f][0] : "?";
const lineText = (f, l) => fileName(f).split("/").pop() + ":" + l;
const esc = s => String(s).replace(/[&<>"']/g, c => "&#" + c.charCodeAt(0) + ";");
const fmt = t => t === null || t === undefined ? "?" : Math.abs(t) >= 1e6 ? (t / 1e6).toFixed(3) + " ms"
  : Math.abs(t) >= 1e4 ? (t / 1e3).toFixed(2) + " us" : Math.abs(t) >= 100 ? t.toFixed(0) + " ns" : t.toFixed(1) + " ns";
const count = n => n.toLocaleString("en");
const bytes = n => n >= 1048576 ? (n / 1048576).toFixed(2) + " MiB" : n >= 1024 ? (n / 1024).toFixed(1) + " KiB" : n + " B";

// First index whose value is >= t (or > t).
function lower(a, t) { let lo = 0, hi = a.length; while (lo < hi) { const m = (lo + hi) >> 1; if (a[m] < t) lo = m + 1; else hi = m; } return lo; }
function upper(a, t) { let lo = 0, hi = a.length; while (lo < hi) { const m = (lo + hi) >> 1; if (a[m] <= t) lo = m + 1; else hi = m; } return lo; }

// ---- lanes: executions that do not overlap, with running sums for any zoom

// What an execution occupies in its row: an engine until the next may begin, a transfer to its end.
const until = i => isDma(evTrack[i]) ? evEnd[i] : Math.max(evIssued[i], evStart[i]);

function makeLane(track, list, number) {
  const n = list.length, idx = Uint32Array.from(list), s = new Float64Array(n), e = new Float64Array(n);
  const busy = new Float64Array(n + 1), wait = new Float64Array(n + 1);
  for (let k = 0; k < n; k++) { s[k] = evStart[idx[k]]; e[k] = until(idx[k]); }
  for (let k = 0; k + 1 < n; k++) if (e[k] > s[k + 1]) e[k] = s[k + 1];
  for (let k = 0; k < n; k++) { busy[k + 1] = busy[k] + e[k] - s[k]; wait[k + 1] = wait[k] + evWait[idx[k]]; }
  return {kind: "lane", track, number, idx, s, e, busy, wait};
}

function lanesOf(track, list) {
  list.sort((a, b) => evStart[a] - evStart[b] || a - b);
  if (!isDma(track)) return [makeLane(track, list, 0)];
  const lists = [], free = [];
  for (const i of list) {
    let best = free.findIndex(t => t <= evStart[i]);
    if (best < 0 && free.length < 6) { best = free.length; lists.push([]); }
    if (best < 0) best = free.indexOf(Math.min(...free));
    free[best] = evEnd[i];
    lists[best].push(i);
  }
  return lists.map((l, k) => makeLane(track, l, k));
}

// Time of [t0, t1) that a lane covers.
function covered(l, t0, t1) {
  const i0 = upper(l.e, t0), i1 = lower(l.s, t1);
  if (i0 >= i1) return 0;
  return l.busy[i1] - l.busy[i0] - Math.max(0, t0 - l.s[i0]) - Math.max(0, l.e[i1 - 1] - t1);
}

// ---- values that change in steps, with maxima of blocks

const BLOCK = 64;
function makeSteps(changes) {  // [time, by], in any order
  changes.sort((a, b) => a[0] - b[0]);
  const t = [], v = [];
  let now = 0, most = 0;
  for (const [at, by] of changes) {
    now += by;
    if (t.length && t[t.length - 1] === at) v[v.length - 1] = now; else { t.push(at); v.push(now); }
    most = Math.max(most, now);
  }
  const n = t.length, block = new Float64Array(Math.ceil(n / BLOCK) || 1);
  for (let i = 0; i < n; i++) block[i >> 6] = Math.max(block[i >> 6], v[i]);
  return {t: Float64Array.from(t), v: Float64Array.from(v), block, most};
}
function highest(st, t0, t1) {
  let i = Math.max(0, upper(st.t, t0) - 1);
  const j = lower(st.t, t1);
  let m = st.t.length && st.t[i] <= t0 ? st.v[i] : 0;
  while (i < j) {
    if ((i & (BLOCK - 1)) === 0 && i + BLOCK <= j) { m = Math.max(m, st.block[i >> 6]); i += BLOCK; } else { if (st.t[i] < t1 && (st.t[i] >= t0)) m = Math.max(m, st.v[i]); i++; }
  }
  return m;
}
const valueAt = (st, t) => { const i = upper(st.t, t) - 1; return i < 0 ? 0 : st.v[i]; };

// ---- rows

const eventsOf = D.tracks.map(() => []);
for (let i = 0; i < N; i++) eventsOf[evTrack[i]].push(i);
const lanes = eventsOf.map((list, t) => lanesOf(t, list));
const isCritical = new Uint8Array(N);
for (const i of D.critical) isCritical[i] = 1;

// The critical path as a lane: each execution until the next on the path begins.
function criticalLane(core) {
  const idx = D.critical.filter(i => D.tracks[evTrack[i]].core === core), n = idx.length;
  const l = {kind: "critical", core, idx: Uint32Array.from(idx), s: new Float64Array(n), e: new Float64Array(n), busy: new Float64Array(n + 1), wait: new Float64Array(n + 1)};
  for (let k = 0; k < n; k++) {
    l.s[k] = evStart[idx[k]];
    l.e[k] = k + 1 < n ? evStart[idx[k + 1]] : evEnd[idx[k]];
    l.busy[k + 1] = l.busy[k] + l.e[k] - l.s[k];
  }
  return l;
}

const areas = D.areas.map(a => ({tensor: a[0], mem: a[1], core: a[2], at: a[3], size: a[4], part: a[5], parts: a[6], from: a[7] / 10, to: a[8] / 10}));
delete D.areas;
const areasOf = (core, mem) => areas.filter(a => a.core === core && a.mem === mem).sort((a, b) => a.from - b.from);
const capacity = mem => mem ? D.psum_bytes : D.sbuf_bytes;
// Memory is drawn up to the highest byte in use, not to the end of a mostly empty partition.
const shown = [0, 1].map(k => Math.min(capacity(k), 2 ** Math.ceil(Math.log2(Math.max(1024, areas.reduce((m, a) => a.mem === k ? Math.max(m, a.at + a.size) : m, 0))))));
const tensorName = t => D.tensors[t][0];

function semaphoresOf(core) {
  const lists = new Map();
  for (let i = 0, t = 0; i < D.sem_id.length; i++) {
    t = (i === D.core_changes[1] ? 0 : t) + D.sem_at[i];
    const id = D.sem_id[i];
    if (D.semaphores[id].core !== core) continue;
    if (!lists.has(id)) lists.set(id, []);
    lists.get(id).push([t / 10, D.sem_by[i]]);
  }
  return [...lists].sort((a, b) => a[0] - b[0]).map(([id, list]) => ({kind: "steps", h: 22, sem: id, core, steps: makeSteps(list),
    label: "s" + D.semaphores[id].number + " " + D.semaphores[id].from + " \u2192 " + D.semaphores[id].to}));
}

const groups = [];  // {label, open, rows}
for (let core = 0; core < D.cores; core++) {
  const tag = coreTag(core), engines = [], queues = [];
  const path = criticalLane(core);
  if (path.idx.length) engines.push({...path, h: 20, label: "critical path"});
  D.tracks.forEach((t, k) => {
    if (t.core !== core) return;
    if (!isDma(k)) engines.push({...lanes[k][0], h: 30, label: t.name});
    else lanes[k].forEach((l, n) => queues.push({...l, h: 20, label: n ? "" : t.name}));
  });
  groups.push({label: tag + "Engines", open: true, rows: engines});
  if (queues.length) groups.push({label: tag + "DMA queues", open: true, rows: queues});
  const mem = [];
  [0, 1].forEach(k => {
    const list = areasOf(core, k);
    if (!list.length) return;
    const name = k ? "PSUM" : "SBUF";
    mem.push({kind: "steps", h: 30, core, mem: k, label: name + " in use", unit: "bytes", steps: makeSteps(list.flatMap(a => [[a.from, a.size], [a.to, -a.size]])), top: shown[k]});
    mem.push({kind: "map", h: k ? 56 : 96, core, mem: k, label: name + " by address", list});
  });
  if (mem.length) groups.push({label: tag + "Memory of a partition", open: true, rows: mem});
  const sems = semaphoresOf(core);
  if (sems.length) groups.push({label: tag + "Semaphores (" + sems.length + ")", open: sems.length <= 12, rows: sems});
}

// ---- links between executions, instructions and lines

// Executions that waited for each one.
const succFirst = new Uint32Array(N + 1), succ = new Uint32Array(N);
for (let i = 0; i < N; i++) if (evFrom[i] >= 0) succFirst[evFrom[i] + 1]++;
for (let i = 0; i < N; i++) succFirst[i + 1] += succFirst[i];
{ const at = succFirst.slice(); for (let i = 0; i < N; i++) if (evFrom[i] >= 0) succ[at[evFrom[i]]++] = i; }

const lineKey = (f, l) => f + ":" + l;
const lineRows = new Map();  // sums over cores
for (const l of D.lines) {
  const key = lineKey(l[0], l[1]), o = lineRows.get(key);
  if (!o) lineRows.set(key, l.slice()); else for (let k = 2; k < 6; k++) o[k] += l[k];
}
const firstEvent = new Int32Array(NI).fill(-1);
for (let i = N - 1; i >= 0; i--) firstEvent[evIns[i]] = i;
