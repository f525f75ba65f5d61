"""Random DAGs with exchanges, and what they come to by a plain interpreter. `random_operators.py` makes applications of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from hypothesis import reject
from hypothesis import strategies as st

Records = Counter[tuple[int, int]]
Windows = Sequence[Sequence[tuple[int, int]]]

SIZE = 10
"""Of windows of event time, in microseconds: a record's number is its time."""
TOP = 2
"""The number of records that `TopN` leaves of each key."""
ALONE = 1000
"""The value that a left join adds to a number that has no partner."""
MARKS = {"even": 10, "negative": 20, "rest": 30}
"""The value that is added to the numbers that leave by each port of `Split`."""
LATE = 7
"""The value that is added to the numbers of records that are late."""
AT_BEGIN, AT_END = (0, 11), (1, -12)
"""The records that `begins` emits in `begin_window()` and in `end_window()`, in one of its partitions."""


@attrs.frozen
class Node:
    """One operator: its kind, the nodes that it gets its records from, how it is partitioned, in how many partitions.

    Attributes:
        modules: in how many modules, one in the other, it is.
        choice: which of its properties it has: 0 to 7.
        windows: how many windows have input: `begins` is silent in the one that ends the input.
    """

    kind: str
    inputs: tuple[int, ...]
    how: str
    partitions: int
    combiner: bool = True
    modules: int = 0
    choice: int = 0
    windows: int = 0

    @property
    def bound(self) -> int:
        """The microseconds by which a record may come later than others to windows of event time."""
        return 15 * (self.choice % 2)

    @property
    def lateness(self) -> int:
        """For how long behind their end they take records in."""
        return 25 * (self.choice // 2 % 2)


ADDING = ("add", "add batches")
PASSING = (*ADDING, "Split", "Sample", "begins", "holds")
SUMMING = ("sums", "combined", "combined batches", "running")
AGGREGATES = ("Count", "Sum", "Min", "Max", "Average", "TopN", "Deduplicate")
RUNNING = ("Deduplicate running",)  # of what takes rows back, tests/laws says the results
JOINS = ("HashJoin inner", "HashJoin left")
MERGING = ("both", "Union")
WINDOWING = ("Tumbling count", "Tumbling sum", "Tumbling min", "Tumbling max")
FAMILIES = (PASSING, SUMMING, AGGREGATES, RUNNING, JOINS, MERGING, WINDOWING)
KINDS = tuple(kind for family in FAMILIES for kind in family)
WAYS = ("parallel", "counted", "single", "by column", "by function")


@st.composite
def shapes(draw: st.DrawFn, *kinds: str, most: int = 7) -> list[Node]:
    """Nodes in an order in which all get their records from earlier ones; node 0 is the first operator in tasks.

    `kinds`: of the nodes behind it, as far as they are not to be drawn.
    """
    nodes = [Node("add", (), "counted", draw(st.integers(1, 3)))]
    for number in range(1, draw(st.integers(1 + max(1, len(kinds)), most))):
        drawn = st.sampled_from(FAMILIES).flatmap(st.sampled_from)
        kind = kinds[number - 1] if number <= len(kinds) else draw(drawn)
        several = kind in JOINS or kind in MERGING
        inputs = tuple(draw(st.integers(-1 if several else 0, number - 1)) for _ in range(1 + several))
        ways = WAYS if kind in PASSING or kind in MERGING else WAYS[2:]
        how = draw(st.sampled_from(WAYS[3:] if kind == "running" else ways))
        modules = 0 if several else draw(st.sampled_from([0, 0, 1, 2]))
        partitions, combiner, choice = draw(st.integers(1, 4)), draw(st.booleans()), draw(st.integers(0, 7))
        nodes.append(Node(kind, inputs if inputs != (-1, -1) else (0, -1), how, partitions, combiner, modules, choice))
    return nodes


def unfused(nodes: Sequence[Node]) -> list[Node]:
    """The same, with an exchange before each operator."""
    return [attrs.evolve(node, how="counted") if node.how == "parallel" else node for node in nodes]


def repartitioned(nodes: Sequence[Node], launch: int) -> list[Node]:
    """The same in other numbers of partitions."""
    return [attrs.evolve(node, partitions=(node.partitions + 2 * launch) % 5 + 1) for node in nodes]


PAIRS = st.tuples(st.integers(0, 6), st.integers(-40, 40))
WINDOW = st.lists(PAIRS, min_size=1, max_size=3) | st.lists(PAIRS, min_size=10, max_size=40)


def windows(most: int = 4) -> st.SearchStrategy[list[list[tuple[int, int]]]]:
    """The records that the input operator emits, window by window."""
    return st.integers(1, most).flatmap(lambda count: st.lists(WINDOW, min_size=count, max_size=count))


def has_end(nodes: Sequence[Node]) -> bool:
    """Return True if the end of the input is a window of its own."""
    return any(node.kind in WINDOWING for node in nodes)


def interpreted(nodes: Sequence[Node], given_in: Windows, is_sampled: Callable[[tuple[int, int]], bool]) -> dict[int, Records]:
    """Return the records that each node emits in all windows. `is_sampled` says if a record alone is one of the sample."""
    total: dict[int, Records] = {number: Counter() for number in range(len(nodes))}
    kept: dict[int, Any] = {number: _EventTime(node) if node.kind in WINDOWING else {} for number, node in enumerate(nodes)}
    for window in [*given_in, *([None] if has_end(nodes) else [])]:
        emitted: dict[int, Records] = {-1: Counter(window or ())}
        for number, node in enumerate(nodes):
            given = [emitted[source] for source in node.inputs or (-1,)]
            if node.kind == "begins":
                emitted[number] = given[0] + Counter([] if window is None else [AT_BEGIN, AT_END])
            elif node.kind in WINDOWING:
                emitted[number] = kept[number].emitted(given[0], is_end=window is None)
            elif node.kind == "Sample":
                emitted[number] = Counter({pair: times for pair, times in given[0].items() if is_sampled(pair)})
            else:
                emitted[number] = _emitted(node, given, kept[number])
            total[number].update(emitted[number])
        _check_size(emitted)
    return total


def _check_size(emitted: dict[int, Records]) -> None:
    """Leaves out examples that take long, or whose numbers neither columns nor floats hold."""
    if any(records.total() > 5000 or any(abs(n) > 1 << 50 for _, n in records) for records in emitted.values()):
        reject()


def _emitted(node: Node, given: list[Records], before: dict[int, Any]) -> Records:
    """Return the records that a node emits in a window. `before`: its state from earlier ones, which is changed."""
    kind, _, how = node.kind.partition(" ")
    if kind == "add":
        return Counter({(key, n + 1): times for (key, n), times in given[0].items()})
    if kind == "both":
        return given[0] + Counter({(key, -n): times for (key, n), times in given[1].items()})
    if kind == "Union":
        return given[0] + given[1]
    if kind == "holds":
        return given[0]
    if kind == "Split":
        return _marked(given[0], matches_all=bool(node.choice % 2))
    if kind == "HashJoin":
        return _joined(*given, keep_all=how == "left")
    if kind == "Deduplicate":
        found = Counter(pair for pair in given[0] if pair not in before)
        before.update(found if how else {})
        return found
    groups: dict[int, list[int]] = {}
    for key, n in given[0].elements():
        groups.setdefault(key, []).append(n)
    if kind == "TopN":
        return Counter((key, n) for key, group in groups.items() for n in sorted(group)[-TOP:])
    if kind == "running":  # else it ends with the window
        before.update({key: [*before.get(key, ()), *group] for key, group in groups.items()})
        groups = {key: before[key] for key in groups}
    return Counter((key % 3, _RESULTS.get(kind, sum)(group)) for key, group in groups.items())


_RESULTS: dict[str, Any] = {
    "Count": len,
    "Min": min,
    "Max": max,
    "Average": lambda group: round(sum(group) / len(group)),
}


def _marked(given: Records, matches_all: bool) -> Records:
    """The records that leave the ports of `Split`, each with the name of its port."""
    found: Records = Counter()
    for (key, n), times in given.items():
        ports = [port for port, holds in (("even", n % 2 == 0), ("negative", n < 0)) if holds] or ["rest"]
        for port in ports if matches_all else ports[:1]:
            found[key, n + MARKS[port]] += times
    return found


def _joined(left: Records, right: Records, keep_all: bool) -> Records:
    found: Records = Counter()
    for (key, n), times in left.items():
        partners = [(other, often) for (its_key, other), often in right.items() if its_key == key]
        if not partners and keep_all:
            partners = [(ALONE, 1)]
        for other, often in partners:
            found[key % 3, n + other] += times * often
    return found


class _EventTime:
    """Windows of event time in plain Python. What is late is so by what came in earlier windows of the run."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.values: dict[tuple[int, int], list[int]] = {}
        self.firings: Counter[tuple[int, int]] = Counter()
        self.changed: set[tuple[int, int]] = set()
        self.latest: int | None = None

    def emitted(self, given: Records, is_end: bool) -> Records:
        watermark = float("-inf") if self.latest is None else self.latest - self.node.bound
        found: Records = Counter()
        for key, n in given.elements():
            start = n // SIZE * SIZE
            if start + SIZE + self.node.lateness <= watermark:
                found[key, n + LATE] += 1
                continue
            self.values.setdefault((key, start), []).append(n)
            self.changed.add((key, start))
            self.latest = n if self.latest is None else max(self.latest, n)
        for key, start in list(self.changed):
            if start + SIZE <= watermark or is_end:
                result = _RESULTS_OF_WINDOWS[self.node.kind](self.values[key, start])
                found[key % 3, result + self.firings[key, start]] += 1
                self.firings[key, start] += 1
                self.changed.discard((key, start))
        return found


_RESULTS_OF_WINDOWS: dict[str, Any] = dict(zip(WINDOWING, (len, sum, min, max), strict=True))
