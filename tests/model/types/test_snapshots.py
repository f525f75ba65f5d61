from __future__ import annotations

import dataclasses
from typing import Any

import attrs
import numpy as np
import pytest

from dagflow.model.types.snapshots import ValueSample


@attrs.define
class Row:
    name: str
    seen: list[int]


@dataclasses.dataclass
class Plain:
    tags: set[str]


@attrs.define
class Bare:
    pass


def appended(value: Any) -> None:
    value.append(7)


CHANGES = [
    ([1, 2], appended),
    ([1] * 1_000, appended),
    ([1] * 1_000, lambda value: value.__setitem__(0, 2)),
    ([1] * 1_000, lambda value: value.__setitem__(-1, 2)),
    ({"n": 1}, lambda value: value.update(n=2)),
    ({"n": [[1]]}, lambda value: value["n"][0].append(2)),
    (dict.fromkeys(range(1_000), 0), lambda value: value.update({0: 1})),
    (dict.fromkeys(range(1_000), 0), lambda value: value.popitem()),
    ({1}, lambda value: value.add(2)),
    (set(range(1_000)), lambda value: value.add(-1)),
    (bytearray(b"abc"), lambda value: value.__setitem__(0, 0)),
    (Row("ada", []), lambda value: setattr(value, "name", "bob")),
    (Row("ada", []), lambda value: value.seen.append(1)),
    ((Row("ada", []), 1), lambda value: value[0].seen.append(1)),
    (Plain(set()), lambda value: value.tags.add("x")),
]


@pytest.mark.parametrize(("value", "change"), CHANGES)
def test_a_value_that_was_changed_in_place_is_found(value: Any, change: Any) -> None:
    (sample,) = ValueSample.of(value)
    assert not sample.has_changed()
    change(value)
    assert sample.has_changed()


@pytest.mark.parametrize("value", [1, 1.5, "a", b"a", None, True])
def test_what_cannot_change_is_not_sampled(value: object) -> None:
    assert ValueSample.of(value) == ()


@pytest.mark.parametrize("value", [object(), Bare(), [float("nan")], {"array": np.zeros(3)}, (), range(3), [[[[[[[[1]]]]]]]]])
def test_what_stays_counts_as_unchanged(value: Any) -> None:
    (sample,) = ValueSample.of(value)
    assert not sample.has_changed()


def test_what_cannot_be_compared_counts_as_unchanged() -> None:
    value = {"array": np.zeros(3)}
    (sample,) = ValueSample.of(value)
    value["array"] = np.ones(3)
    assert not sample.has_changed()


def test_a_snapshot_shows_what_was_there() -> None:
    (sample,) = ValueSample.of({"row": Row("ada", [1]), "many": list(range(200))})
    text = repr(sample.before)
    assert text.startswith("{'row': Row(name='ada', seen=[1]), 'many': [0, 1, 2, ")
    assert text.endswith("62, 63, … (200 in all)}")
