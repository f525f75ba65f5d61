"""Write sample files: `python apps/orders/sample.py FOLDER [FILES] [ROWS]`. The same arguments write the same bytes."""

from __future__ import annotations

import csv
import datetime
import random
import sys
from collections.abc import Iterator
from pathlib import Path

HEADERS = (
    ["order_id", "customer", "updated", "status", "amount"],
    ["amount", "order_id", "status", "updated", "customer"],  # another order
    ["order_id", "customer", "updated", "status", "amount", "country"],  # one more
    ["order_id", "updated", "status", "amount", "country", "coupon"],  # one more, and one is missing
)
"""The columns of the files change: each header serves a quarter of them."""

STATUSES = ("new", "paid", "sent", "returned")


def rows(number: int, files: int, count: int, seed: int) -> Iterator[dict[str, str]]:
    """Yield the rows of one file: new orders, and later states of orders in the files before it."""
    chance = random.Random(f"{seed} {number}")
    start = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC) + datetime.timedelta(days=number)
    for index in range(count):
        amount = chance.randrange(100, 100_000)
        yield {
            "order_id": str(chance.randrange(1, (number + 1) * count)),
            "customer": chance.choice(("Ada", "Bo, Jr.", "Çelik", 'Dee "D"')),
            "updated": f"{start + datetime.timedelta(seconds=index * 7):%Y-%m-%dT%H:%M:%SZ}",
            "status": chance.choice(STATUSES),
            "amount": f"{amount / 100:.2f}",
            "country": chance.choice(("se", "no", "fi")),
            "coupon": chance.choice(("", "SPRING", "2 for 1")),
        }


def spoiled(row: dict[str, str], chance: random.Random) -> dict[str, str]:
    """Return a row, now and then one with a negative amount, or with text for a number."""
    draw = chance.random()
    if draw < 0.02:
        return {**row, "amount": "-" + row["amount"]}
    return {**row, "amount": "free"} if draw < 0.04 else row


def write(folder: Path, files: int = 8, count: int = 100, seed: int = 1) -> None:
    """Write files, and later ones with other columns."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        chance = random.Random(f"{seed} spoiled {number}")
        header = HEADERS[number * len(HEADERS) // files]
        with (folder / f"orders-{number:03d}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, header, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(spoiled(row, chance) for row in rows(number, files, count, seed))


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:]))
