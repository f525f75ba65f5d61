"""The tables: persons, auctions and bids, after the generators of Apache Beam and Flink, and the side input.

Of fifty events one is a person, three are auctions and 46 bids. Half of the bids go to hot auctions, three quarters of them come
from hot bidders, and three quarters of the auctions are from hot sellers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TABLES = ("person", "auction", "bid", "side_input")

AUCTIONS, BIDS = 3, 46  # for each person
EVENTS = 1 + AUCTIONS + BIDS
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
HOT = 100  # of so many auctions or persons, the first is hot
AUCTIONS_IN_FLIGHT, ACTIVE_PERSONS, AHEAD = 100, 1000, 10
SIDE_KEYS, CHANNELS = 10_000, 10_000
BEGIN = np.datetime64("2015-07-15T00:00:00", "ms")
DISORDER = 100  # an event is so many places late at most

FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

Integers = np.ndarray[tuple[int], np.dtype[np.int64]]


def make_data(folder: Path, events: int, rate: float = 10_000, parts: int = 1, seed: int = 1) -> Path:
    """Make the tables, a folder of Parquet files each, `parts` of all but the side input; those that are there stay.

    Args:
        rate: events in a second of their own time.
    """
    made = folder / f"events-{events}-{rate:g}-{parts}-{seed}"
    if made.exists():
        return made
    begun = folder / f"{made.name}-begun"
    for name in TABLES:
        (begun / name).mkdir(parents=True, exist_ok=True)
    edges = [events * part // parts for part in range(parts + 1)]
    for part in range(parts):
        chance = np.random.default_rng((seed, part))
        for name, table in _tables(np.arange(edges[part], edges[part + 1]), rate, chance).items():
            pq.write_table(table, begun / name / f"{part}.parquet")
    keys = pa.array(np.arange(SIDE_KEYS))
    pq.write_table(pa.table({"key": keys, "value": keys.cast(pa.string())}), begun / "side_input" / "0.parquet")
    begun.rename(made)
    return made


def _tables(numbers: Integers, rate: float, chance: np.random.Generator) -> dict[str, pa.Table]:
    """Return the tables of the events with these numbers, in the order in which they arrive."""
    numbers = numbers[np.argsort(numbers + chance.integers(0, DISORDER, len(numbers)), kind="stable")]
    kinds = numbers % EVENTS
    return {
        "person": _persons(numbers[kinds == 0], rate, chance),
        "auction": _auctions(numbers[(kinds > 0) & (kinds <= AUCTIONS)], rate, chance),
        "bid": _bids(numbers[kinds > AUCTIONS], rate, chance),
    }


def _persons(numbers: Integers, rate: float, chance: np.random.Generator) -> pa.Table:
    size = len(numbers)
    first, last = _one_of(FIRST_NAMES, size, chance), _one_of(LAST_NAMES, size, chance)
    digits = pa.array(chance.integers(10**15, 10**16, size)).cast(pa.string())
    return pa.table(
        {
            "id": FIRST_ID + numbers // EVENTS,
            "name": pc.binary_join_element_wise(first, last, " "),
            "email": pc.binary_join_element_wise(
                _text(7, size, chance), pa.scalar("@"), _text(5, size, chance), pa.scalar(".com"), ""
            ),
            "credit_card": pc.binary_join_element_wise(
                *(pc.utf8_slice_codeunits(digits, at, at + 4) for at in range(0, 16, 4)), " "
            ),
            "city": _one_of(CITIES, size, chance),
            "state": _one_of(STATES, size, chance),
            "date_time": _times(numbers, rate),
        }
    )


def _auctions(numbers: Integers, rate: float, chance: np.random.Generator) -> pa.Table:
    size, initial = len(numbers), _prices(len(numbers), chance)
    length = np.maximum(2 * round(AUCTIONS_IN_FLIGHT * EVENTS / AUCTIONS / rate * 1000), 1)
    times = _times(numbers, rate)
    return pa.table(
        {
            "id": FIRST_ID + AUCTIONS * (numbers // EVENTS) + numbers % EVENTS - 1,
            "item_name": _text(20, size, chance),
            "description": _text(100, size, chance),
            "initial_bid": initial,
            "reserve": initial + _prices(size, chance),
            "date_time": times,
            "expires": times + (1 + chance.integers(0, length, size)).astype("timedelta64[ms]"),
            "seller": _persons_of(numbers, 0, chance),
            "category": FIRST_CATEGORY + chance.integers(0, CATEGORIES, size),
        }
    )


def _bids(numbers: Integers, rate: float, chance: np.random.Generator) -> pa.Table:
    size, newest = len(numbers), AUCTIONS * (numbers // EVENTS) + AUCTIONS - 1
    oldest = np.maximum(newest - AUCTIONS_IN_FLIGHT, 0)
    auctions = np.where(chance.random(size) < 1 / 2, newest // HOT * HOT, chance.integers(oldest, newest + 1 + AHEAD))
    channel = pa.array(chance.integers(0, CHANNELS, size)).cast(pa.string())
    is_hot = pa.array(chance.random(size) < 1 / 2)
    cold = pc.binary_join_element_wise(pa.scalar("channel-"), channel, "")
    start = pa.scalar("https://www.nexmark.com/")
    return pa.table(
        {
            "auction": FIRST_ID + auctions,
            "bidder": _persons_of(numbers, 1, chance),
            "price": _prices(size, chance),
            "channel": pc.if_else(is_hot, _one_of(HOT_CHANNELS, size, chance), cold),
            "url": pc.binary_join_element_wise(
                start, _text(5, size, chance), pa.scalar("/item.htm?query=1&channel_id="), channel, ""
            ),
            "date_time": _times(numbers, rate),
            "extra": _text(40, size, chance),
        }
    )


def _persons_of(numbers: Integers, place: int, chance: np.random.Generator) -> Integers:
    """Return the ids of sellers and bidders: three quarters are hot ones, at a place of their own; the others entered lately."""
    size, count = len(numbers), numbers // EVENTS + 1
    active = np.minimum(count, ACTIVE_PERSONS)
    cold = count - active + chance.integers(0, active + AHEAD)
    return FIRST_ID + np.where(chance.random(size) < 3 / 4, (count - 1) // HOT * HOT + place, cold)


def _times(numbers: Integers, rate: float) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    return BEGIN + (numbers * 1000 / rate).astype("timedelta64[ms]")


def _prices(size: int, chance: np.random.Generator) -> Integers:
    return np.round(100 * 10 ** (6 * chance.random(size))).astype(np.int64)


def _one_of(texts: Sequence[str], size: int, chance: np.random.Generator) -> pa.Array:
    return pa.array(texts).take(pa.array(chance.integers(0, len(texts), size)))


def _text(length: int, size: int, chance: np.random.Generator) -> pa.Array:
    """Return texts of random letters."""
    ends = np.arange(size + 1, dtype=np.int32) * length
    letters = chance.integers(ord("a"), ord("z") + 1, size * length, dtype=np.uint8)
    return pa.StringArray.from_buffers(size, pa.py_buffer(ends), pa.py_buffer(letters))
