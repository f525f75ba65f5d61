"""The input of `joined/app.py`, what is to come of it, and its outputs, read by the json and sqlite3 modules.

Input arrives in parts. Later parts correct and cancel orders of earlier ones, bring customers that orders have waited for, and
move others.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow.ledger import Ledger
from tests.chaos import oracle

PARTS = 3
TOWNS = ("Lund", "Oslo", "Rome", "Bari")
CUSTOMERS = 12
"""Of each part. Orders name those of all parts, and some that never come."""

Row = tuple[Any, ...]


@attrs.frozen
class Results:
    """The rows of all outputs: orders with their town, or None; the top orders of each town; the totals of each town."""

    placed: Counter[Row]
    top: Counter[Row]
    totals: Counter[Row]


def write(folder: Path, files: int, rows: int) -> list[Results]:
    """Write the input, so many files of orders in all, as `PART/orders/…` and `PART/customers/…`; the results after each part."""
    rng, results = random.Random(7), []
    orders, customers = dict[int, Row](), dict[str, Row]()
    amounts = rng.sample(range(10, 1_000_000), files * rows)  # no two are equal
    for part in range(PARTS):
        for name in ("orders", "customers"):
            (folder / f"{part}" / name).mkdir(parents=True, exist_ok=True)
        moved = rng.sample(sorted(customers), len(customers) // 3)
        for customer in [*(f"c{part * CUSTOMERS + n}" for n in range(CUSTOMERS)), *moved]:
            customers[customer] = (customer, part, rng.choice(TOWNS[: part + 2]))
        named = [row for row in customers.values() if row[1] == part]
        _write(folder / f"{part}" / "customers" / f"{part}.csv", "customer,since,town", named)
        for number in range(part * files // PARTS, (part + 1) * files // PARTS):
            lines = []
            for _ in range(rows):
                order = rng.randrange((number + 1) * rows * 2 // 3)  # new, or one of an earlier file, or of this one
                version = orders[order][1] + 1 if order in orders else 0
                amount = amounts.pop() if rng.random() < 0.75 else 0
                orders[order] = (order, version, f"c{rng.randrange(CUSTOMERS * (PARTS + 1))}", amount)
                lines.append(orders[order])
            rng.shuffle(lines)
            _write(folder / f"{part}" / "orders" / f"{number:02d}.csv", "id,version,customer,amount", lines)
        results.append(_results(list(orders.values()), {customer: row[1:] for customer, row in customers.items()}))
    return results


def _write(path: Path, header: str, rows: list[Row]) -> None:
    path.write_text("".join(f"{line}\n" for line in (header, *(",".join(map(str, row)) for row in rows))))


def _results(orders: list[Row], customers: dict[str, Row]) -> Results:
    placed = [(*order, *customers.get(order[2], (None, None))) for order in orders if order[3] > 0]
    top, totals = Counter[Row](), Counter[Row]()
    for town in TOWNS:
        here = sorted((row for row in placed if row[-1] == town), key=lambda row: -row[3])
        top.update(here[:3])
        if here:
            totals[town, len(here), sum(row[3] for row in here), here[0][3]] += 1
    return Results(Counter(placed), top, totals)


def arrive(folder: Path, part: int, source: Path) -> None:
    """Let a part of the input arrive, each file at once."""
    for path in sorted((folder / f"{part}").glob("*/*.csv")):
        target = source / path.relative_to(folder / f"{part}")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(path, folder / "part")
            os.replace(folder / "part", target)


def top(output: Path) -> Counter[Row]:
    """The rows of the newest snapshot."""
    return Counter(_placed(row) for path in sorted((output / "current").iterdir()) for row in _rows(path))


def placed(output: Path) -> Counter[Row]:
    """The rows that all changes add up to."""
    return standing(output)[-1]


def standing(output: Path) -> list[Counter[Row]]:
    """Return the rows that changes add up to: none, and those after each window that has changes.

    Raises AssertionError for a row that goes and is not there, or comes and is there.
    """
    rows, after = Counter[Row](), [Counter[Row]()]
    for entry in Ledger.open(str(output)).entries():
        if entry.data is None or entry.data.new_data is None:
            continue
        changes = [row for file in entry.data.new_data.files for row in _rows(output / file.path)]
        for kinds, change in ((_GONE, rows.subtract), (_NEW, rows.update)):
            change(Counter(_placed(row) for row in changes if row["_change_type"] in kinds))
            assert set(rows.values()) <= {0, 1}, {row: times for row, times in rows.items() if times not in (0, 1)}
        after.append(+rows)
    return after


_GONE, _NEW = ("update_preimage", "delete"), ("insert", "update_postimage")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text().splitlines())


def _placed(row: dict[str, Any]) -> Row:
    return tuple(row[name] for name in ("id", "version", "customer", "amount", "since", "town"))


def totals(output: Path) -> Counter[Row]:
    """The rows of the database; none if the table is not there yet."""
    if not (output / "towns.db").exists():
        return Counter()
    with contextlib.closing(sqlite3.connect(output / "towns.db")) as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return Counter(database.execute("SELECT town, n, amount, most FROM towns").fetchall()) if "towns" in names else Counter()


def wrong(output: Path, results: list[Results], is_last: bool) -> Iterator[str]:
    """Yield the promises that are broken after any launch: each table has the result of all input up to some part.

    `is_last`: the database has the result of all input. The oracle of files checks that of the other outputs.
    """
    expected = [Results(Counter(), Counter(), Counter()), *results]
    if is_last and (rows := totals(output)) != results[-1].totals:
        yield f"database: {oracle.difference(rows, results[-1].totals)}"
    if (rows := totals(output)) not in [each.totals for each in expected]:
        yield f"the database has the result of no part of the input: {rows}"
    if (output / "placed" / "_dagflow" / "ledger").exists():
        for number, rows in enumerate(standing(output / "placed")):
            if rows not in [each.placed for each in expected]:
                yield f"the changes after {number} windows have the result of no part of the input: {rows}"
