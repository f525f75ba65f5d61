"""Rows that were written behind an exchange."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dagflow.ledger import Ledger
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator, trace
from tests.lineage import traced
from tests.lineage.test_trace import rows_of, run


def test_a_row_behind_an_exchange_is_traced_to_its_record(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a").write_text("one\ntwo\nthree\nfour\n")
    run(traced.dealt, source, out, block_size=5)
    found = trace(str(out), 0)
    assert (found.problem, found.written is not None and found.written.operator) == (None, "writer")
    assert [item.start for item in found.items] == [0, 5, 10, 15], "all that any task has read"
    assert found.remarks == ("it was written behind an exchange: any of these ranges may have a part in it",)
    exact = trace(str(out), 0, exact=True, locator=ApplicationLocator(trust=True))
    (part,) = exact.parts
    assert (exact.problem, exact.remarks, part.rows) == (None, (), 1)
    (position,) = part.positions
    assert exact.source is not None
    assert rows_of(out)[0].strip() == f"<{exact.source.data.decode().strip().upper()}>".encode()
    assert rows_of(out)[0].strip() == f"<{(source / 'a').read_text()[position:].split()[0].upper()}>".encode()
    report = replay(str(out), locator=ApplicationLocator(trust=True))
    assert (report.windows, report.rows, report.problems, report.left_out) == (1, 4, (), ())


def test_a_replay_deals_keys_as_the_window_did(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a").write_text("".join(f"line {n}\n" for n in range(50)))
    run(traced.keyed, source, out, block_size=100)
    assert sum(path.is_file() and path.name[0] not in "._" for path in out.iterdir()) == 3
    report = replay(str(out), locator=ApplicationLocator(trust=True))
    assert (report.windows, report.rows, report.problems, report.left_out) == (1, 50, (), ())


def test_what_goes_on_over_windows_is_told(tmp_path: Path) -> None:
    """The window at the end of a run has no ranges of its own: it continues what earlier ones have brought."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a").write_text("one\ntwo\n")
    run(traced.windows, source, out, block_size=4)
    found = trace(str(out), 0)
    assert (found.problem, [item.start for item in found.items]) == (None, [0, 4])
    assert found.remarks == (
        "it was written behind an exchange: any of these ranges may have a part in it",
        "these are the ranges of all windows up to the row's that are kept: counts continues from window to window",
    )


SALES = [
    [("a", 1, 5), ("b", 2, 7), ("a", 3, 5)],
    [("c", 4, 9), ("a", 5, 1)],
    [("b", 6, 7), ("a", 7, 8), ("d", 8, 2), ("b", 2, 7)],
]
"""Shop, number, price, by file."""


def sold(folder: Path, out: Path, application: Any, launches: int = 1) -> list[dict[str, Any]]:
    """Launch an application over the files, all at once or one after the other; return its rows in the order of their offsets."""
    folder.mkdir()
    (folder.parent / "shops.csv").write_text("shop,town\na,Lund\nb,Oslo\nc,Lund\nd,Rome\n")
    for number, rows in enumerate(SALES):
        text = "".join(f"{shop},{each},{price}\n" for shop, each, price in rows)
        (folder / f"s{number}.csv").write_text("shop,number,price\n" + text)
        if number >= len(SALES) - launches:
            run(application, folder, out)
    return [json.loads(row) for row in rows_of(out)]


def parts_of(out: Path, row: int) -> dict[str, int]:
    found = trace(str(out), row, exact=True, locator=ApplicationLocator(trust=True))
    assert (found.problem, found.remarks) == (None, ())
    counts: dict[str, int] = {}
    for part in found.parts:
        name = Path(part.path or "").name
        counts[name] = counts.get(name, 0) + part.rows
    return counts


def counted(wanted: Any) -> dict[str, int]:
    """Return the number of sales by file for which a function is true."""
    counts = {f"s{number}.csv": sum(map(wanted, rows)) for number, rows in enumerate(SALES)}
    return {name: count for name, count in counts.items() if count}


def newest(out: Path) -> range:
    """Return the offsets of the rows of the newest entry."""
    entry = next(Ledger.open(str(out)).data_entries())
    assert entry.data is not None
    assert entry.data.new_data is not None
    return range(entry.data.new_data.interval.start, entry.data.new_data.interval.end + 1)


@pytest.mark.parametrize("launches", [1, 3])
@pytest.mark.parametrize("application", [traced.totals, traced.counts, traced.by_function])
def test_totals_are_traced_to_all_their_records(application: Any, launches: int, tmp_path: Path) -> None:
    rows = sold(tmp_path / "in", tmp_path / "out", application, launches)
    for offset in newest(tmp_path / "out"):
        shop = rows[offset].get("shop", rows[offset].get("key"))
        assert parts_of(tmp_path / "out", offset) == counted(lambda sale, shop=shop: sale[0] == shop)


def test_a_total_of_all_is_traced_to_all(tmp_path: Path) -> None:
    sold(tmp_path / "in", tmp_path / "out", traced.total)
    (offset,) = newest(tmp_path / "out")
    assert parts_of(tmp_path / "out", offset) == counted(lambda sale: True)


@pytest.mark.parametrize("application", [traced.deduplicated, traced.ranked, traced.distinct])
def test_rows_that_are_selected_are_traced_to_themselves(application: Any, tmp_path: Path) -> None:
    rows = sold(tmp_path / "in", tmp_path / "out", application, 3)
    for offset in newest(tmp_path / "out"):
        row = tuple(rows[offset].values())
        assert parts_of(tmp_path / "out", offset) == counted(lambda sale, row=row: sale == row)


def test_joined_rows_are_traced_to_both_sides(tmp_path: Path) -> None:
    rows = sold(tmp_path / "in", tmp_path / "out", traced.joined, 3)
    for offset in newest(tmp_path / "out"):
        sale = (rows[offset]["shop"], rows[offset]["number"], rows[offset]["price"])
        sales = counted(lambda each, sale=sale: each == sale)
        assert parts_of(tmp_path / "out", offset) == {**sales, "shops.csv": 1}


def test_totals_of_joined_rows_are_traced_through_both(tmp_path: Path) -> None:
    rows = sold(tmp_path / "in", tmp_path / "out", traced.towns, 3)
    towns = {"Lund": "ac", "Oslo": "b", "Rome": "d"}
    for offset in newest(tmp_path / "out"):
        shops = towns[rows[offset]["town"]]
        sales = counted(lambda sale, shops=shops: sale[0] in shops)
        assert parts_of(tmp_path / "out", offset) == {**sales, "shops.csv": len(shops)}


def test_rows_that_no_longer_count_are_left_out(tmp_path: Path) -> None:
    """A shop whose total has grown is in another class: what it was made of is behind that class, and not the old one."""
    rows = sold(tmp_path / "in", tmp_path / "out", traced.classes, 3)
    totals: dict[str, int] = {}
    for shop, _, price in (sale for sales in SALES for sale in sales):
        totals[shop] = totals.get(shop, 0) + price
    for offset in newest(tmp_path / "out"):
        shops = {shop for shop, total in totals.items() if total // 10 == rows[offset]["class"]}
        assert parts_of(tmp_path / "out", offset) == counted(lambda sale, shops=shops: sale[0] in shops)


def test_what_cannot_be_run_again_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sold(tmp_path / "in", out, traced.totals, 3)
    (tmp_path / "in" / "s0.csv").unlink()
    found = trace(str(out), newest(out)[0], exact=True, locator=ApplicationLocator(trust=True))
    assert {part.window for part in found.parts}.isdisjoint({0})
    assert found.remarks[0].startswith("window 0 could not be run again, and counts nothing: ")
    (out / "_dagflow" / "plan" / "0000000000").unlink()
    found = trace(str(out), newest(out)[0], exact=True, locator=ApplicationLocator(trust=True))
    assert found.remarks[0].startswith("windows before 1 are no longer kept, and count nothing")


@pytest.mark.parametrize(
    ("application", "remark"),
    [
        (traced.hours, "'tumbling' groups by time, too"),
        (traced.diamond, "records of 'read' lead to the row in several ways"),
    ],
)
def test_what_counts_too_much_is_told(application: Any, remark: str, tmp_path: Path) -> None:
    sold(tmp_path / "in", tmp_path / "out", application)
    found = trace(str(tmp_path / "out"), newest(tmp_path / "out")[0], exact=True, locator=ApplicationLocator(trust=True))
    assert found.problem is None
    assert found.parts
    assert any(each.startswith(remark) for each in found.remarks), found.remarks


@pytest.mark.parametrize("launches", [1, 3])
@pytest.mark.parametrize("application", [traced.sliding, traced.sliding_rows])
def test_results_of_time_windows_are_traced_to_the_records_in_them(application: Any, launches: int, tmp_path: Path) -> None:
    rows = sold(tmp_path / "in", tmp_path / "out", application, launches)
    assert len({row["hour"] for row in rows}) > 3
    for offset in newest(tmp_path / "out"):
        shop, hour = rows[offset]["shop"], rows[offset]["hour"]
        first = hour - 24 if hour == 22 else hour
        assert parts_of(tmp_path / "out", offset) == counted(
            lambda sale, shop=shop, first=first: sale[0] == shop and first <= sale[1] < first + 3
        )


def test_combined_records_are_traced_by_their_key(tmp_path: Path) -> None:
    rows = sold(tmp_path / "in", tmp_path / "out", traced.combined)
    for offset in newest(tmp_path / "out"):
        sales = counted(lambda sale, shop=rows[offset]["shop"]: sale[0] == shop)
        assert parts_of(tmp_path / "out", offset) == {**sales, "shops.csv": 1}


def test_rows_of_a_changelog_are_traced(tmp_path: Path) -> None:
    rows = sold(tmp_path / "in", tmp_path / "out", traced.changes)
    for offset in newest(tmp_path / "out"):
        assert parts_of(tmp_path / "out", offset) == counted(lambda sale, shop=rows[offset]["shop"]: sale[0] == shop)
