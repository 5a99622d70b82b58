#!/usr/bin/env python3
"""The page of `nki profile --html` in a headless Chromium: page_test.py NKI ROOT [PICTURES]

Rendered, zoomed, clicked, used by keyboard, in both themes and at several widths; a page of 100,000
instructions. No page may ask the network for anything or throw an error. With PICTURES, screenshots are left there.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing beside the sources
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cdp import Browser  # noqa: E402

NKI, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PICTURES = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
SHIFT = 8
passed = failed = 0


def check(fine, what):
    global passed, failed
    if fine:
        passed += 1
    else:
        failed += 1
        print("FAILED:", what)


def profile(out, *args):
    done = subprocess.run([NKI, "profile", *args, "--html", out], capture_output=True, text=True)
    check(done.returncode == 0, f"{args}: {done.stderr}")
    return out


def state(b):
    return b.js("nki.state()")


def quiet(b, what):
    """Nothing but the file was asked for; no error was thrown or logged."""
    asked = [e["request"]["url"] for e in b.of("Network.requestWillBeSent")]
    check(all(u.startswith(("file://", "data:")) for u in asked), f"{what}: asked for {asked}")
    check(len([u for u in asked if u.startswith("file://")]) == 1, f"{what}: asked for {asked}")
    errors = b.of("Runtime.exceptionThrown") + [e for e in b.of("Log.entryAdded") if e["entry"]["level"] == "error"]
    errors += [e for e in b.of("Runtime.consoleAPICalled") if e["type"] in ("error", "assert")]
    check(not errors, f"{what}: {str(errors)[:400]}")


def inked(b, x, y, w, h):
    """How many colours a part of the timeline has."""
    return b.js(f"""(() => {{ const r = devicePixelRatio, d = cv.getContext('2d').getImageData({x} * r, {y} * r, {w} * r, {h} * r).data, s = new Set();
        for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; }})()""")


def picture(b, name):
    if PICTURES:
        os.makedirs(PICTURES, exist_ok=True)
        b.screenshot(os.path.join(PICTURES, name + ".png"))


def rendered(b):
    s = state(b)
    check(s["events"] > 50, "executions are there")
    for row in ("Engines", "critical path", "Tensor", "Scalar", "Vector", "SBUF in use", "SBUF by address", "PSUM by address"):
        check(row in s["rows"], f"row {row}: {s['rows']}")
    check(any(r.startswith("DMA") for r in s["rows"]), "DMA rows")
    check(any(r.startswith("Semaphores") for r in s["rows"]), "semaphore rows")
    check(inked(b, 200, 30, 500, 300) > 12, "the timeline is drawn")
    check(b.js("document.querySelectorAll('#src .has').length") > 10, "lines have times")
    check("flash_attention" in b.js("document.title"), "title")
    text = b.js("document.body.innerText")
    for word in ("MFU", "Findings", "Stalls", "Roofline"):
        check(word in text, word)


def zoomed(b):
    before = state(b)
    b.mouse("mouseWheel", 600, 200, deltaX=0, deltaY=-300, modifiers=2)
    b.settle()
    s = state(b)
    check(s["t1"] - s["t0"] < .9 * (before["t1"] - before["t0"]), "Ctrl and the wheel zoom in")
    b.drag(700, 200, 500, 200)
    check(state(b)["t0"] > s["t0"], "dragging moves")
    b.mouse("mouseWheel", 600, 200, deltaX=0, deltaY=120)
    b.settle()
    check(state(b)["scrollY"] > 0, "the wheel scrolls rows")
    b.js("document.getElementById('all').click(); scrollTo(0)")
    b.settle()
    check(abs(state(b)["t1"] - before["t1"]) < 1, "Fit shows everything")
    b.drag(400, 200, 520, 200, modifiers=SHIFT)
    s = state(b)
    check(s["range"] and s["range"][1] > s["range"][0], "Shift and drag measure")
    check("of the time" in b.js("document.getElementById('pane').innerText"), "the range has a table")
    b.key("Escape")
    check(state(b)["range"] is None, "Escape clears")


def linked(b):
    """An execution lights its line, and a line its executions."""
    event = b.js("D.critical[Math.floor(D.critical.length / 2)]")
    b.js(f"zoomTo({event}); scrollTo(0)")
    b.settle()
    at = b.js(f"nki.place({event})")
    b.click(at["x"], at["y"] + b.js("document.getElementById('time').getBoundingClientRect().top"))
    s = state(b)
    check(s["sel"] == event, f"a click selects: {s['sel']}, not {event}")
    check(s["line"] == s["selLine"] > 0, "its line is lit")
    seen = b.js("(() => { const r = document.querySelector('#src .on').getBoundingClientRect(), s = document.getElementById('src').getBoundingClientRect(); return r.top >= s.top && r.bottom <= s.bottom; })()")
    check(seen, "and in sight")
    check("stood still" in b.js("document.getElementById('pane').innerText"), "details are shown")
    r = b.js("(() => { const e = [...document.querySelectorAll('#src .has')].find(x => !x.classList.contains('on')); e.scrollIntoView({block: 'center'}); const q = e.getBoundingClientRect(); return {x: q.left + 200, y: q.top + 8, line: +e.id.slice(1)}; })()")
    b.click(r["x"], r["y"])
    s = state(b)
    check(s["line"] == r["line"], "a click on a line lights it")
    check(s["marked"] > 0, "and its executions")
    check(b.js("marked.every(i => insLine[evIns[i]] === " + str(r["line"]) + ")"), "all of that line")
    b.key("n")
    check(state(b)["selLine"] == r["line"], "n goes to one of them")
    b.key("Escape")


def by_keyboard(b):
    b.js("clearAll(); cv.focus(); view(0, end)")
    b.settle()
    whole = state(b)
    b.key("+")
    b.key("+")
    s = state(b)
    check(s["t1"] - s["t0"] < .6 * (whole["t1"] - whole["t0"]), "+ zooms")
    b.key("ArrowRight")
    check(state(b)["t0"] > s["t0"], "the arrow moves")
    b.key("0")
    check(abs(state(b)["t1"] - whole["t1"]) < 1, "0 shows everything")
    for _ in range(3):
        b.key("ArrowDown")
    check(state(b)["row"] == "Tensor", f"arrows choose a row: {state(b)['row']}")
    b.key("Enter")
    first = state(b)["sel"]
    check(first >= 0, "Enter selects in the row")
    b.key("n")
    check(state(b)["sel"] != first, "n goes on")
    b.key("p")
    check(state(b)["sel"] == first, "p goes back")
    waits = b.js("(() => { for (let i = 0; i < N; i++) if (evFrom[i] >= 0) return i; return -1; })()")
    b.js(f"select({waits}, true); cv.focus()")
    b.key("b")
    check(state(b)["sel"] == b.js(f"evFrom[{waits}]"), "b goes to what it waited for")
    b.key("v")
    check(b.js(f"evFrom[nki.state().sel]") == b.js(f"evFrom[{waits}]"), "v goes forward")
    b.key("l")
    check(state(b)["marked"] > 0, "l highlights the line")
    b.key("Escape")
    b.key("c")
    check(state(b)["onlyPath"], "c shows the critical path")
    b.key("c")
    tabs = b.js("TABS.map(t => t[0])")
    for k, name in enumerate(tabs):
        b.key(str(k + 1))
        check(state(b)["tab"] == name, f"{k + 1} opens {name}")
        check(len(b.js("document.getElementById('pane').innerText")) > 20, f"{name} says something")
    b.key("ArrowLeft")
    check(state(b)["tab"] == tabs[-2], "arrows go through tabs")
    b.key("/")
    for letter in "matmul":
        b.key(letter)
    check(state(b)["marked"] > 0, "find highlights")
    b.key("Enter")
    check("matmul" in b.js("opOf(evIns[sel])"), "Enter in find selects a match")
    b.key("Escape")
    check(state(b)["marked"] == 0, "Escape leaves find")
    b.key("o")
    b.key("ArrowDown")
    b.key("Enter")
    s = state(b)
    check(s["line"] > 0 and s["marked"] > 0, "lines can be chosen by keyboard")
    b.key("g")
    b.key("?")
    check(b.js("document.getElementById('keys').open"), "? lists the keys")
    b.key("Escape")
    check(not b.js("document.getElementById('keys').open"), "Escape closes them")
    # Tab reaches each control and the focus can be seen.
    b.js("document.activeElement.blur()")
    reached = set()
    for _ in range(24):
        b.key("Tab")
        reached.add(b.js("document.activeElement.id || document.activeElement.tagName"))
    for name in ("search", "all", "path", "theme", "help", "c", "src", "pane", "vsplit", "hsplit", "file", "metric"):
        check(name in reached, f"Tab reaches {name}: {sorted(reached)}")


def themes(b):
    background = "getComputedStyle(document.body).backgroundColor"
    b.scheme("light")
    light = b.js(background)
    b.scheme("dark")
    dark = b.js(background)
    check(light == "rgb(255, 255, 255)" and dark != light, f"system themes: {light} {dark}")
    b.js("document.getElementById('theme').click()")
    b.settle()
    check(b.js(background) == light, "the switch overrides the system")
    b.js("document.getElementById('theme').click()")
    b.scheme("light")
    check(b.js(background) == dark, "dark by switch on a light system")
    b.js("document.getElementById('theme').click()")
    b.settle()
    check(b.js(background) == light, "back to the system's")


def widths(b, name):
    for scheme in ("light", "dark"):
        b.scheme(scheme)
        for w, h in ((1600, 1000), (1100, 760), (700, 900)):
            b.size(w, h)
            over = b.js("document.documentElement.scrollWidth - innerWidth")
            check(over <= 0, f"{w} wide: {over} pixels too wide")
            box = b.js("(() => { const r = cv.getBoundingClientRect(); return [r.width, r.height, cv.width, cv.height]; })()")
            check(box[0] > 300 and box[1] > 120, f"{w} wide: the timeline is {box}")
            check(abs(box[0] - box[2]) < 2 and abs(box[1] - box[3]) < 2, f"{w} wide: drawn at another size: {box}")
            picture(b, f"{name}-{scheme}-{w}")
    b.scheme("light")
    b.size(1500, 950)


LARGE = '''import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def large(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(10000):
        a = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.sbuf)
        w = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
        p = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum)
        nisa.dma_copy(dst=a, src=x[i % 4])
        nisa.memset(w, 1.0)
        for k in range(3):
            nisa.nc_matmul(dst=p, stationary=w, moving=a)
        nisa.activation(dst=a, op=nl.exp, data=p)
        nisa.tensor_scalar(dst=a, data=a, op0=nl.add, operand0=1.0)
        nisa.tensor_scalar(dst=a, data=a, op0=nl.multiply, operand0=2.0)
        nisa.tensor_copy(dst=a, src=a, engine=nisa.engine.gpsimd)
        nisa.dma_copy(dst=out[i % 4], src=a)
    return out
'''


def large(b, folder):
    source = os.path.join(folder, "large.nki")
    with open(source, "w") as f:
        f.write(LARGE)
    page = profile(os.path.join(folder, "large.html"), source, "x=bfloat16[4,128,256]")
    before, began = b.cpu(), time.monotonic()
    b.open(page)
    opened, opened_cpu = time.monotonic() - began, b.cpu() - before
    n = state(b)["events"]
    check(n >= 100000, f"{n} executions")
    # Processor time of a frame while the view moves and zooms, so that a busy machine does not count; and
    # the time between frames as it is.
    before = b.cpu()
    frames = b.js("""new Promise(done => { const at = []; let k = 0; const w = end;
        const step = t => { at.push(t); if (k++ === 120) { view(0, end); done(at.slice(1).map((v, i) => v - at[i])); return; }
          const width = w * Math.pow(.86, k % 60); view((w - width) * .4 + k, (w - width) * .4 + k + width); requestAnimationFrame(step); };
        requestAnimationFrame(step); })""")
    cpu = (b.cpu() - before) / 120 * 1000
    drawn = b.js("nki.frame(160)")
    pick = b.js("(() => { const s = performance.now(); for (let k = 0; k < 50; k++) eventAt(rows.find(r => r.label === 'Vector'), 300 + k * 9); select(50000, true); return (performance.now() - s) / 51; })()")
    find = b.js("(() => { const s = performance.now(); find('multiply'); const t = performance.now() - s; clearAll(); return t; })()")
    size = os.path.getsize(page) / 1e6
    print(f"{n} executions, page {size:.1f} MB, opened in {opened:.2f} s ({opened_cpu:.2f} s of processor time); a frame takes {cpu:.1f} ms of processor time; drawing {statistics.median(drawn):.1f} ms "
          f"(95 %: {sorted(drawn)[int(len(drawn) * .95)]:.1f}), frames come every {statistics.median(frames):.1f} ms "
          f"(95 %: {sorted(frames)[int(len(frames) * .95)]:.1f}); select {pick:.2f} ms, find {find:.0f} ms")
    check(cpu < 33, f"a frame takes {cpu:.1f} ms of processor time")
    check(opened_cpu < 5, f"it opens soon: {opened_cpu:.2f} s")
    picture(b, "large")
    quiet(b, "large")


TWO = '''import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def two(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    c = nl.program_id(0)
    a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x[c])
    for _ in range(1 + 3 * c):
        nisa.tensor_scalar(dst=a, data=a, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out[c], src=a)
    return out
'''


def others(b, folder):
    two = os.path.join(folder, "two.nki")
    with open(two, "w") as f:
        f.write(TWO)
    b.open(profile(os.path.join(folder, "two.html"), two, "x=float32[2,128,512]", "--grid", "2"))
    rows = state(b)["rows"]
    check("core 0 Engines" in rows and "core 1 Engines" in rows, f"both cores have rows: {rows}")
    line = next(k for k, s in enumerate(TWO.split("\n"), 1) if "tensor_scalar" in s)
    check(b.js(f"D.strings.length && (selectLine(0, {line}), marked.length)") == 5, "a line's executions on both cores")
    for name in b.js("TABS.map(t => t[0])"):
        b.js(f"showTab('{name}')")
    quiet(b, "two cores")
    picture(b, "two")

    neff = os.path.join(folder, "add.neff")
    subprocess.run([NKI, "compile", ROOT + "/examples/vector_add.nki", "a=float32[200,300]", "b=float32[200,300]", "-o", neff], check=True, capture_output=True)
    b.open(profile(os.path.join(folder, "neff.html"), neff))
    check(state(b)["events"] > 3, "a container has a page")
    check(b.js("document.querySelectorAll('#src .has').length") > 2, "with its source")
    quiet(b, "container")

    loop = ROOT + "/examples/dynamic_loop.nki"
    shapes = ["x=float32[5,100,64]", "count=int32[1,1]"]
    why = subprocess.run([NKI, "profile", loop, *shapes], capture_output=True, text=True).stderr
    trips = ["--trip", why.split("--trip ")[1].split("=")[0] + "=7"]
    # Without arguments the data of the file's own "# try:" line say how often: three times.
    for words, want in (shapes + trips, 7), ([], 3):
        b.open(profile(os.path.join(folder, "loop.html"), loop, *words))
        most = b.js("(() => { const n = new Map(); for (let i = 0; i < N; i++) n.set(evIns[i], (n.get(evIns[i]) || 0) + 1); return Math.max(...n.values()); })()")
        check(most == want, f"a loop's instructions are there once a trip: {most} of {want}")
    quiet(b, "loop")


def main():
    b = Browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            b.size(1500, 950)
            b.scheme("light")
            b.open(profile(os.path.join(folder, "attention.html"), ROOT + "/examples/flash_attention.nki"))
            rendered(b)
            zoomed(b)
            linked(b)
            by_keyboard(b)
            themes(b)
            widths(b, "attention")
            quiet(b, "attention")
            others(b, folder)
            large(b, folder)
    finally:
        b.close()
    print(f"page: {passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
