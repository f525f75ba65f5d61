"""Measure the page of large runs in a headless Chromium: size, first paint, and the time of a frame while panning and zooming.

python -m benchmarks.page [OPERATORS ...]. It needs a Chromium on the path.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.report import typed, write_between
from benchmarks.table import markdown
from dagflow.page.diagram.picture import picture_of
from dagflow.page.document import run_html
from tests.page import synthetic
from tests.page.browser import Browser, chromium

MARK = "page measured"
WINDOWS = 10_000
FRAMES = """new Promise((done) => {
  const times = [];
  let last = performance.now();
  const go = (n) => {
    ACT;
    requestAnimationFrame(() => {
      const now = performance.now();
      times.push(now - last);
      last = now;
      if (n < 90) go(n + 1);
      else { times.sort((a, b) => a - b); done([times[45], times[85]]); }
    });
  };
  go(0);
})"""
GESTURES = {
    "pan the DAG": "graph.x += n % 2 ? 9 : -11; moveGraph()",
    "zoom the DAG": "zoomGraph(n < 45 ? 1.02 : 1 / 1.02)",
    "pan time": "panTime(n % 2 ? -30 : 25)",
    "zoom time": "zoomTime(n < 45 ? 1.1 : 1 / 1.1)",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table with a row for each number of operators. Return 1 without a Chromium, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.page", description="The page of large runs in a headless Chromium."
    )
    parser.add_argument("operators", type=int, nargs="*", help="numbers of operators (300 1000)")
    parser.add_argument("--quick", action="store_true", help="a small page: shows that it works, not how fast")
    parser.add_argument("--markdown", type=Path, help="write the table here, between the marks")
    given = parser.parse_args(arguments)
    if chromium() is None:
        print("no Chromium on the path", file=sys.stderr)
        return 1
    sizes, windows = given.operators or ([30] if given.quick else [300, 1_000]), 100 if given.quick else WINDOWS
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder, "browser")) as browser:
        rows = [measure(browser, Path(folder), operators, windows) for operators in sizes]
    head = ("operators", "MB", "layout, s", "first paint, ms", "all drawn, ms", *(f"{name}, ms a frame" for name in GESTURES))
    text = f"{markdown(head, rows)}\n\n{windows:,} windows. Frames: the median / the slowest twentieth is over."
    print(text)
    if given.markdown is not None:
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        made = f"Made by `{typed('page', arguments)}` on {today}: {machine.describe()}; load {machine.load():.1f}."
        write_between(given.markdown, f"{made}\n\n{text}\n", MARK)
    return 0


def measure(browser: Browser, folder: Path, operators: int, windows: int) -> list[str]:
    """Return the figures of one page."""
    began = time.perf_counter()
    picture_of(synthetic.view(operators))
    layout = time.perf_counter() - began
    page = run_html(synthetic.run(operators, windows))
    path = folder / f"{operators}.html"
    path.write_text(page)
    browser.size(1280, 900)
    began = time.perf_counter()
    browser.open(path.as_uri())
    whole = time.perf_counter() - began
    paint = browser.js("performance.getEntriesByName('first-contentful-paint')[0]?.startTime") or 0
    browser.js("state.folded.size && foldAll()")
    browser.js("document.getElementById('graph').scrollIntoView()")
    frames = []
    for name, act in GESTURES.items():
        if "time" in name:
            browser.js("document.getElementById('timeline').scrollIntoView()")
        middle, slow = browser.js(FRAMES.replace("ACT", act))
        frames.append(f"{middle:.0f} / {slow:.0f}")
    return [f"{operators:,}", f"{len(page) / 1e6:.2f}", f"{layout:.2f}", f"{paint:.0f}", f"{whole * 1000:.0f}", *frames]


if __name__ == "__main__":
    sys.exit(main())
