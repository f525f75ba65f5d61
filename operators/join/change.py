"""The change of a join by a window: pairs of rows, and rows without a partner, that no longer hold or hold now."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import KeyedTable, TableKeys
from dagflow.arrow_types.buffers import of_marks
from operators.join.kept_rows import Arrived, Ints, KeptRows, Marks, Pool
from operators.join.lookup import Partners

How = Literal["inner", "left", "right", "full", "semi", "anti"]
Pairs = tuple[pa.Array, pa.Array]
"""Rows of both sides, by their numbers; null for none."""


@attrs.frozen
class JoinKind:
    """The rows that a join emits.

    Attributes:
        pairs: the pairs of rows with equal keys.
        left: the rows of the left side that have (True) or do not have (False) a partner; None: neither.
        right: whether also those of the right side that do not have one.
    """

    pairs: bool
    left: bool | None
    right: bool

    @property
    def is_inner(self) -> bool:
        """True if it emits pairs only."""
        return self.pairs and self.left is None and not self.right


KINDS: dict[How, JoinKind] = {
    "inner": JoinKind(pairs=True, left=None, right=False),
    "left": JoinKind(pairs=True, left=False, right=False),
    "right": JoinKind(pairs=True, left=None, right=True),
    "full": JoinKind(pairs=True, left=False, right=True),
    "semi": JoinKind(pairs=False, left=True, right=False),
    "anti": JoinKind(pairs=False, left=False, right=False),
}


@attrs.frozen(eq=False)
class JoinChange:
    """The change of a join by a window.

    Attributes:
        kind: what it emits.
        left, right: the rows of both sides with the keys of the window.
        has_left, has_right: before and after the window, whether a key has rows there. The last one is for rows without a key.
    """

    kind: JoinKind
    left: Pool
    right: Pool
    has_left: tuple[Marks, Marks]
    has_right: tuple[Marks, Marks]

    def rows_where(self, holds: Callable[[Pairs], Marks]) -> tuple[list[Pairs], list[Pairs]]:
        """Return the rows that no longer hold, and those that hold now, of a join whose pairs meet another condition, too.

        Of an inner join, pairs with a row that comes or goes are tried. Else a row has a partner if one of its pairs meets the
        condition, so all pairs with the keys of the window are.
        """
        left, right, kind = self.left, self.right, self.kind
        if kind.is_inner:
            gone, come = ([pairs_where(pair, holds) for pair in self.rows(retracts=retracts)] for retracts in (True, False))
            return gone, come
        there = [(left.before, right.before), (left.after, right.after)]
        matched = [tuple(np.zeros(len(side.codes), bool) for side in (left, right)) for _ in there]
        changes: list[list[Pairs]] = [[], []]
        for pair in self._pairs(np.arange(len(left.codes)), np.arange(len(right.codes)), keep_all=False):
            lefts, rights = pairs_where(pair, holds)
            rows, partners = lefts.to_numpy(), rights.to_numpy()
            stands = [lefts_there[rows] & rights_there[partners] for lefts_there, rights_there in there]
            for (of_left, of_right), some in zip(matched, stands, strict=True):
                of_left[rows[some]] = True
                of_right[partners[some]] = True
            for change, some, others in zip(changes, stands, stands[::-1], strict=True):
                if kind.pairs:
                    change.append((lefts.filter(of_marks(some & ~others)), rights.filter(of_marks(some & ~others))))
        for side, wanted in ((0, kind.left), (1, False if kind.right else None)):
            if wanted is not None:
                alone = [there[when][side] & (matched[when][side] == wanted) for when in (0, 1)]
                for change, some, others in zip(changes, alone, alone[::-1], strict=True):
                    numbers = pa.array(np.flatnonzero(some & ~others))
                    none = pa.nulls(len(numbers), pa.int64())
                    change.append((none, numbers) if side else (numbers, none))
        return changes[0], changes[1]

    def rows(self, *, retracts: bool) -> Iterator[Pairs]:
        """Yield the rows that no longer hold, or those that hold now, some at a time."""
        kind, left, right = self.kind, self.left, self.right
        now, other = (0, 1) if retracts else (1, 0)
        left_now, right_now = ((left.before, right.before), (left.after, right.after))[now]
        left_stays, right_stays = left.before & left.after, right.before & right.after
        rows = np.flatnonzero(left_now & ~left_stays)
        if kind.pairs:
            yield from self._pairs(rows, np.flatnonzero(right_now), keep_all=kind.left is False)
            yield from self._pairs(np.flatnonzero(left_stays), np.flatnonzero(right_now & ~right_stays), keep_all=False)
        if kind.left is not None:
            was, holds = (self.has_right[which][left.codes] == kind.left for which in (other, now))
            fresh = np.zeros(0, np.int64) if kind.pairs else rows[holds[rows]]  # beside pairs, they have come with these
            some = np.concatenate([np.flatnonzero(left_stays & holds & ~was), fresh])
            yield pa.array(some), pa.nulls(len(some), pa.int64())
        if kind.right:
            was, holds = (~self.has_left[which][right.codes] for which in (other, now))
            some = np.flatnonzero(right_now & holds & ~(right_stays & was))
            yield pa.nulls(len(some), pa.int64()), pa.array(some)

    def _pairs(self, lefts: Ints, rights: Ints, *, keep_all: bool) -> Iterator[Pairs]:
        if not len(lefts):
            return
        partners = Partners.of(self.right.codes[rights], len(self.has_right[0]))
        numbers = pa.array(rights)
        for rows, at in partners.pairs(self.left.codes[lefts], keep_all=keep_all):
            yield pa.array(lefts[rows]), numbers.take(at)


def pairs_where(pair: Pairs, holds: Callable[[Pairs], Marks]) -> Pairs:
    """Return the pairs that meet a condition."""
    some = of_marks(holds(pair))
    return pair[0].filter(some), pair[1].filter(some)


def changed(
    kind: JoinKind,
    left: Arrived,
    right: Arrived,
    kept: tuple[KeptRows, KeptRows],
    counts: KeyedTable,
    *,
    loads_all: bool = False,
) -> JoinChange:
    """Add the rows of a window to those that are kept, and return the change.

    `counts`: the numbers of kept rows by key. `loads_all`: all rows with the keys of the window are wanted.
    """
    sides = left.netted(), right.netted()
    codes, keys = TableKeys.distinct([side.keys for side in sides])
    known = counts.lookup(keys)
    before = [pc.fill_null(known.column(each.count).cast(pa.int64()), 0).to_numpy() for each in kept]
    come, gone = (
        [np.bincount(own[(own >= 0) & (side.signs == sign)], minlength=len(keys)) for own, side in zip(codes, sides, strict=True)]
        for sign in (1, -1)
    )
    pools = []
    for side, other in ((0, 1), (1, 0)):
        is_first = (before[other] == 0) & (come[other] > 0)
        touched = (gone[other] > 0) | (come[other] > 0 if kind.pairs else is_first)
        pools.append(kept[side].change(sides[side], codes[side], keys, before[side], (gone[side] > 0) | touched | loads_all))
    after = [some + more - pool.gone(len(keys)) for some, more, pool in zip(before, come, pools, strict=True)]
    if counts.is_saved:
        _count(counts, kept, keys, before, after)
    has_left, has_right = ((np.append(before[side] > 0, False), np.append(after[side] > 0, False)) for side in (0, 1))
    return JoinChange(kind, pools[0], pools[1], has_left, has_right)


def _count(
    counts: KeyedTable, kept: tuple[KeptRows, KeptRows], keys: TableKeys, before: Sequence[Ints], after: Sequence[Ints]
) -> None:
    """Put the numbers of rows that have changed."""
    differs = (before[0] != after[0]) | (before[1] != after[1])
    some, none = (np.flatnonzero(differs & ((after[0] + after[1] > 0) == stays)) for stays in (True, False))
    counts.put(keys.take(some), {each.count: pa.array(numbers[some]) for each, numbers in zip(kept, after, strict=True)})
    counts.remove(keys.take(none))
