"""The page in a real browser. Skipped, with a reason that pytest prints, where there is no Chromium."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG
from dagflow.errors import DagflowError
from dagflow.model.types.records import ReaderRecord
from dagflow.page.document import graph_html, run_html
from dagflow.page.run.data import run_data
from dagflow.page.server import RunServer
from dagflow.planning.view import plan_view
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, Map, RecordWriter, Union
from tests.page import synthetic
from tests.page.browser import Browser, chromium
from tests.render import sample

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on the path: the page is not tested in a browser"),
]


def copy(dag: DAG, conf: dict[str, str]) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]]))
    lines = dag.add_operator("lines", BlockReader())
    out = dag.add_operator("out", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, out.input)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(autouse=True)
def on_a_desktop(browser: Browser) -> Iterator[None]:
    browser.problems.clear()
    browser.requests.clear()
    browser.size(1280, 900)
    browser.scheme("light")
    yield
    assert browser.problems == []


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Any:
    def open_page(page: str) -> Browser:
        (tmp_path / "page.html").write_text(page)
        browser.open((tmp_path / "page.html").as_uri())
        return browser

    return open_page


EVIL = "</script><img src=x onerror='window.broken=1'>"


@pytest.fixture
def lines(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text(f"one\n{EVIL}\nthree\n")
    return {"input": str(tmp_path / "logs"), "output": str(tmp_path / "out")}


def test_a_click_on_a_row_shows_its_line(show: Any, lines: dict[str, str]) -> None:
    run_dag(copy, lines)
    browser = show(run_html(run_data(lines["output"])))
    browser.click('[data-key="row1"]')
    origin = browser.js("document.getElementById('origin').innerText")
    for part in ("window 0", "s0-0000", "a.txt", "the line itself", EVIL):
        assert part in origin
    assert browser.js("window.broken") is None
    assert browser.js("document.images.length") == 0
    assert [url for url in browser.requests if not url.startswith("file:")] == []


def test_a_window_of_a_row_leads_to_the_timeline(show: Any, lines: dict[str, str]) -> None:
    run_dag(copy, lines)
    browser = show(run_html(run_data(lines["output"])))
    browser.click('[data-key="row0"]')
    browser.click('[data-key="origin window"]')
    assert "Window 0" in browser.js("document.getElementById('window').innerText")
    browser.click('[data-key="origin operator"]')
    assert browser.js("document.querySelector('#panel h3').innerText") == "out"


def check(dag: DAG, conf: dict[str, str]) -> None:
    """Copy lines; one that begins with `bad` fails."""
    files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]], blocks_threshold=1))
    lines = dag.add_operator("lines", BlockReader())
    upper = dag.add_operator("upper", Map(refuse_bad))
    out = dag.add_operator("out", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, upper.input)
    dag.add_stream("rest", upper.output, out.input)


def refuse_bad(line: ReaderRecord[str]) -> str:
    if line.record.startswith("bad"):
        raise ValueError("cannot take it")
    return line.record


def test_a_run_that_failed_says_what_to_do(show: Any, lines: dict[str, str]) -> None:
    (Path(lines["input"]) / "b.txt").write_text("bad\n")
    with pytest.raises(DagflowError):
        run_dag(check, lines)
    browser = show(run_html(run_data(lines["output"])))
    overview = browser.js("document.getElementById('overview').innerText")
    assert "2 windows (0 to 1): 1 committed, 1 failed." in overview
    for part in ("window 0: 3 records in 1 file", "dagflow explain DF301", "it resumes with window 1."):
        assert part in overview
    assert browser.js("document.querySelector('#time-legend').innerText.includes('window that failed')")
    panel = browser.js("document.getElementById('window').innerText")
    assert "Window 1: failed" in panel
    assert "b.txt" in browser.js("document.querySelector('#window tr.bad').innerText")


def test_a_run_that_was_stopped_is_no_failure(show: Any, lines: dict[str, str]) -> None:
    run_dag(copy, lines)
    data = run_data(lines["output"])
    data["run"] |= {
        "status": "interrupted",
        "error": {"text": "KeyboardInterrupt", "code": None, "operator": None, "window": None},
    }
    overview = show(run_html(data)).js("document.getElementById('overview').innerText")
    assert "stopped from outside" in overview
    assert "KeyboardInterrupt" not in overview


def test_the_timeline_begins_with_the_newest_launch(show: Any, lines: dict[str, str]) -> None:
    data = synthetic.run(5, 20, 40)
    data["windows"] |= {"launches": ["a", "b"], "launch": [0] * 18 + [1] * 2}
    data["windows"]["planned"][18:] = [90_000, 90_500]
    data["windows"]["decided"][18:] = [90_400, 90_900]
    browser = show(run_html(data))
    assert browser.js("line.from > state.data.windows.t0 + 80")
    browser.click('[aria-label="The whole run"]')
    assert browser.js("line.from < state.data.windows.t0 + 1")


def test_nothing_connected_is_a_dash(show: Any, lines: dict[str, str]) -> None:
    run_dag(copy, lines)
    browser = show(run_html(run_data(lines["output"])))
    cells = """Object.fromEntries([...document.querySelectorAll('#operators tbody tr')].map((row) =>
      [row.cells[0].innerText, [...row.querySelectorAll('td.n')].slice(0, 2).map((cell) => cell.innerText)]))"""
    assert browser.js(cells) == {"files": ["\N{EN DASH}", "1"], "lines": ["1", "3"], "out": ["3", "\N{EN DASH}"]}


def test_the_median_is_the_usual_one(show: Any) -> None:
    browser = show(run_html(synthetic.run(5, 3, 0)))
    assert browser.js("[median([3, 1]), median([5, 1, 2])]") == [2, 2]


def test_the_dag_fits_beside_an_open_panel(show: Any, lines: dict[str, str]) -> None:
    run_dag(check, lines)
    browser = show(run_html(run_data(lines["output"])))
    browser.size(1000, 900)
    browser.js("pick('out')")
    browser.wait(PICKED_IS_IN_SIGHT)


PICKED_IS_IN_SIGHT = """(() => {
  const [node, dag] = ['.g-node[aria-pressed=true]', '#dag'].map((part) => document.querySelector(part).getBoundingClientRect());
  return dag.left <= node.left && node.right <= dag.right; })()"""


def test_the_picked_operator_stays_in_sight_when_the_window_gets_narrower(show: Any) -> None:
    """The DAG is too wide to be shown whole, and the operator at its end is picked."""
    browser = show(run_html(synthetic.run(30, 3, 0)))
    browser.js("pick([...graph.laid.boxes.values()].reduce((a, b) => (a.x > b.x ? a : b)).node.name, true)")
    browser.js("addEventListener('resize', () => { window.resized = true; })")  # runs after the page's own
    browser.size(1000, 900)
    browser.wait("window.resized")
    browser.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")  # the DAG is drawn in a frame
    assert browser.js(PICKED_IS_IN_SIGHT)


def diamond(dag: DAG, conf: dict[str, str]) -> None:
    """Split lines, and put them together again."""
    files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]]))
    lines = dag.add_operator("lines", BlockReader())
    sides = [dag.add_operator(f"side{n}", Map(refuse_bad)) for n in range(2)]
    both = dag.add_operator("both", Union[str](2))
    out = dag.add_operator("out", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, *(side.input for side in sides))
    for n, side in enumerate(sides):
        dag.add_stream(f"part{n}", side.output, both.inputs[n])
    dag.add_stream("rest", both.output, out.input)


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_of_streams_cover_nothing(show: Any, browser: Browser, lines: dict[str, str], width: int) -> None:
    run_dag(diamond, lines)
    browser.size(width, 900)
    browser = show(run_html(run_data(lines["output"])))
    assert browser.js("[...document.querySelectorAll('.g-label')].filter((label) => label.textContent).length") == 6
    meet = """(() => {
      const boxes = [...document.querySelectorAll('.g-label, .g-node .box')].map((e) => e.getBoundingClientRect());
      const of = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
      return boxes.filter((a, n) => a.width && boxes.some((b, m) => n !== m && b.width && of(a, b))).length; })()"""
    assert browser.js(meet) == 0


def test_the_dag_of_a_phone_runs_downwards_and_fits(show: Any, browser: Browser, lines: dict[str, str]) -> None:
    run_dag(diamond, lines)
    browser.size(390, 844)
    browser = show(run_html(run_data(lines["output"])))
    edges = "[...document.querySelectorAll('.g-node .box')].map((e) => e.getBoundingClientRect())"
    assert browser.js(f"{edges}.every((box) => box.left >= 16 && box.right <= 374)")
    browser.js("document.querySelector('.g-node[tabindex=\"0\"]').focus()")
    browser.key("ArrowDown")
    assert browser.js("document.activeElement.getAttribute('aria-label')").startswith("operator lines")
    browser.size(1280, 900)
    browser.wait("graph.laid.upright === false")


def test_modules_fold(show: Any) -> None:
    browser = show(graph_html(plan_view(sample.modules(), "staged")))
    before = browser.js("document.querySelectorAll('.g-node').length")
    assert browser.js("document.getElementById('ledger').offsetHeight") == 0  # nothing has run
    browser.click(".g-group.module text")
    assert browser.js("document.querySelectorAll('.g-node.folded').length") == 1
    assert browser.js("document.activeElement.getAttribute('aria-label')").startswith("folded module")
    browser.key("Enter")
    assert browser.js("document.querySelectorAll('.g-node').length") == before
    assert browser.js("document.querySelectorAll('.g-node.folded').length") == 0


def test_folded_boxes_do_not_overlap(show: Any) -> None:
    browser = show(run_html(synthetic.run(60, 3, 0)))
    overlaps = """(() => { const all = [...graph.laid.boxes.values()]; let n = 0;
      const meet = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
      for (const a of all) for (const b of all) if (a !== b && meet(a, b)) n++;
      return n; })()"""
    assert browser.js(overlaps) == 0
    groups = browser.js("state.data.graph.groups.map((g, n) => g.kind === 'module' ? n : -1).filter((n) => n >= 0)")
    for group in groups:
        browser.js(f"fold({group})")
        assert browser.js(overlaps) == 0


def test_the_dag_is_walked_with_the_keyboard(show: Any) -> None:
    browser = show(graph_html(plan_view(sample.chain(), "staged")))
    browser.js("document.querySelector('.g-node[tabindex=\"0\"]').focus()")
    names = [browser.js("document.activeElement.dataset.key")]
    for _ in range(2):
        browser.key("ArrowRight")
        names.append(browser.js("document.activeElement.dataset.key"))
    assert len(set(names)) == 3
    browser.key("Enter")
    assert browser.js("document.getElementById('panel').classList.contains('gone')") is False
    browser.key("Escape")
    assert browser.js("document.getElementById('panel').classList.contains('gone')") is True
    assert browser.js("document.activeElement.dataset.key") == names[-1]
    browser.key("ArrowLeft")
    assert browser.js("document.activeElement.dataset.key") == names[-2]


def test_all_that_is_clicked_can_be_reached_with_tab(show: Any) -> None:
    browser = show(run_html(synthetic.run(5, 30, 60)))
    browser.js("document.activeElement.blur()")
    reached = []
    for _ in range(60):
        browser.key("Tab")
        reached.append(
            browser.js("document.activeElement.dataset.key || document.activeElement.id || document.activeElement.innerText")
        )
    for wanted in ("theme", "Overview", "zoom Fit", "timeline", "row0"):
        assert wanted in reached
    named = "(e.getAttribute('aria-label') || e.textContent).trim()"
    unnamed = f"[...document.querySelectorAll('button,[role=button],a,canvas')].filter((e) => !{named}).length"
    assert browser.js(unnamed) == 0


def test_light_and_dark(show: Any) -> None:
    browser = show(run_html(synthetic.run(5, 3, 3)))
    back = "getComputedStyle(document.body).backgroundColor"
    light = browser.js(back)
    browser.scheme("dark")
    dark = browser.js(back)
    assert dark != light
    browser.click("#theme")
    assert browser.js(back) == light


def test_a_phone_scrolls_in_one_direction(show: Any) -> None:
    browser = show(run_html(synthetic.run(40, 100, 400)))
    browser.size(390, 844)
    assert browser.js("document.documentElement.scrollWidth") <= 390


def test_a_thousand_operators_open(show: Any) -> None:
    browser = show(run_html(synthetic.run(1_000, 10_000)))
    assert browser.js("graph.laid.boxes.size") > 0
    browser.js("state.folded.size && foldAll(); fitGraph(true)")
    assert browser.js("graph.laid.boxes.size") == 1_000


def test_the_live_page_follows_a_run_and_keeps_the_readers_place(browser: Browser, lines: dict[str, str]) -> None:
    server = RunServer(lines["output"], port=0)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        browser.call("Page.navigate", url=server.url)
        browser.wait("(document.getElementById('waiting')?.textContent || '').includes('No run has written')")
        run_dag(copy, lines)
        browser.wait("document.body.dataset.drawn")
        browser.click('.g-node[data-key="n1"]')
        browser.click('[data-key="row1"]')
        browser.js("window.scrollTo(0, 300)")
        (Path(lines["input"]) / "b.txt").write_text("four\n")
        run_dag(copy, lines)
        browser.wait("state.data.windows.window.length === 2")
        assert browser.js("state.picked") == "lines"
        assert browser.js("[scrollY, document.activeElement.dataset.key]") == [300, "row1"]
        assert json.loads(browser.js("JSON.stringify(state.data.rows.map((row) => row.text))"))[0]
    finally:
        server.stop()
        thread.join()
        server.close()
