from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from typing import Any

from dagflow.page.document import graph_html, live_html, policy, run_html
from dagflow.planning.view import plan_view
from tests.page import synthetic
from tests.render import sample

EVIL = "</script><img src=x onerror=alert(1)><!--\u2028"


class Tags(HTMLParser):
    """Collects the elements of a page, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(page)
    return parser.tags


def data_of(page: str) -> Any:
    found = re.search(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def evil(value: Any) -> Any:
    """Put markup into every text of some data."""
    if isinstance(value, dict):
        return {name: evil(each) for name, each in value.items()}
    if isinstance(value, list):
        return [evil(each) for each in value]
    return value + EVIL if isinstance(value, str) else value


def test_the_page_has_its_data_and_nothing_else_of_it() -> None:
    data = synthetic.run(5, 3, 3)
    page = run_html(data)
    assert data_of(page) == json.loads(json.dumps(data))


def test_no_text_of_a_run_becomes_markup() -> None:
    data = evil(json.loads(json.dumps(synthetic.run(5, 3, 3))))
    page = run_html(data)
    assert "<img" not in page
    assert [tag for tag, _ in tags(page)] == [tag for tag, _ in tags(run_html(synthetic.run(5, 3, 3)))]
    assert data_of(page) == data


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    for page in (run_html(synthetic.run(5, 3, 3)), live_html(), graph_html(plan_view(sample.modules(), "staged"))):
        own = [(tag, found) for tag, found in tags(page)]
        assert not [found for _, found in own if {"src", "srcset", "style", "action"} & set(found)]
        assert not [found for _, found in own if any(name.startswith("on") for name in found)]
        assert all((found.get("href") or "#").startswith("#") for _, found in own)
        (meta,) = [found for tag, found in own if tag == "meta" and found.get("http-equiv") == "Content-Security-Policy"]
        script = page[page.rindex("<script>") + len("<script>") : page.rindex("</script>")]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in (meta["content"] or "")
        assert (meta["content"] or "").startswith("default-src 'none'")
        assert "unsafe" not in (meta["content"] or "")


def test_only_the_live_page_may_ask_its_server() -> None:
    assert "connect-src" not in policy(live=False)
    assert "connect-src 'self'" in policy(live=True)


def test_the_script_makes_elements_of_text_only() -> None:
    script = live_html()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)


def test_a_large_run_is_a_small_file() -> None:
    page = run_html(synthetic.run(operators=300, windows=10_000))
    assert len(page) < 1_500_000


def test_a_thousand_operators_have_a_page() -> None:
    page = graph_html(synthetic.view(1_000))
    assert len(data_of(page)["graph"]["nodes"]) == 1_000
