"""Parts of work items make up the whole, or it is said what is wrong."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.runtime.stage.parts import Part, uncovered, without


@given(st.lists(st.integers(1, 99), unique=True, max_size=6), st.data())
def test_any_cuts_make_up_the_whole_in_any_order(cuts: list[int], data: st.DataObject) -> None:
    bounds = [None, *sorted(cuts), None]
    parts = [Part(0, a, b) for a, b in pairwise(bounds)]
    assert uncovered(data.draw(st.permutations(parts)), 1) == []
    lost = data.draw(st.sampled_from(parts))
    assert uncovered([p for p in parts if p != lost], 1) != []
    assert uncovered([*parts, lost], 1) != []
    assert sorted(without([Part(0)], [lost]), key=str) == sorted(_merged([p for p in parts if p != lost]), key=str)


def _merged(parts: list[Part]) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        if found and found[-1].stop == part.start and part.start is not None:
            found[-1] = Part(0, found[-1].start, part.stop)
        else:
            found.append(part)
    return found


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "item 0: it has not been read"),
        ([Part(0), Part(0)], "item 0: its end has been read twice"),
        ([Part(0, None, 3), Part(0, None, 4), Part(0, 4, None)], "item 0: it has been read twice"),
        ([Part(0), Part(1)], "item 1: there is no such item"),
        ([Part(0, 3, None)], "item 0: its start to 3 has not been read"),
        ([Part(0, None, 3)], "item 0: 3 to its end has not been read"),
        ([Part(0, None, 3), Part(0, 4, None)], "item 0: 3 to 4 has not been read"),
        ([Part(0, None, 4), Part(0, 3, None)], "item 0: 3 to 4 have been read twice"),
        ([Part(0, None, 4), Part(0, 4, None), Part(0, 6, None)], "item 0: its end has been read twice"),
    ],
)
def test_what_is_wrong_is_said(parts: list[Part], problem: str) -> None:
    assert uncovered(parts, 1) == [problem]


def test_only_owned_parts_can_be_stolen() -> None:
    with pytest.raises(ValueError, match="does not own it"):
        without([Part(0, None, 5)], [Part(0, 4, 6)])
