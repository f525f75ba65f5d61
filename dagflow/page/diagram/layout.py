"""A layered layout of nested boxes. Every stream leads to the right, and no two boxes overlap.

The steps are those of Sugiyama's method (https://en.wikipedia.org/wiki/Layered_graph_drawing): layers by the longest path, order
in a layer by the means of the neighbours, then heights. A group is laid out by itself, and is one box in the group around it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import attrs

GAP = 64.0
"""Between two layers: room for curves and figures."""
SPACE = 22.0
"""Between two boxes of a layer."""
LANE = 10.0
"""Between a stream that passes a layer and its neighbours."""
PAD = 16.0
TITLE = 26.0
_SWEEPS = 8

Point = tuple[float, float]
Key = tuple[str, str]


@attrs.define(eq=False)
class Box:
    """An operator, or a group of boxes. `x`, `y`: of its upper left corner, after `arrange`. `kind`: for the renderer."""

    name: str
    width: float = 0.0
    height: float = 0.0
    kind: str = "operator"
    children: list[Box] = attrs.field(factory=list)
    x: float = 0.0
    y: float = 0.0
    ports: dict[Key, float] = attrs.field(factory=dict)
    routes: dict[Key, list[Point]] = attrs.field(factory=dict)

    def leaves(self) -> Iterator[Box]:
        """Yield the operators in it."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    def groups(self) -> Iterator[Box]:
        """Yield the groups in it, outer ones first."""
        for child in self.children:
            if child.children:
                yield child
                yield from child.groups()


def arrange(root: Box, edges: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[Point]]:
    """Give every box its place. Return the route of each edge (a pair of operator names): points from left to right.

    The edge of a cycle that leads back is a straight line. Groups that a stream leaves and comes back to are dissolved.

    >>> root = Box("", children=[Box("a", 80, 40), Box("b", 80, 40)])
    >>> arrange(root, [("a", "b")])
    {('a', 'b'): [(96.0, 36.0), (160.0, 36.0)]}
    """
    pairs = list(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))
    _Group(root, pairs).place()
    root.x = root.y = 0.0
    chains: dict[str, list[Box]] = {}
    _settle(root, [], chains)
    return {(source, target): _way(chains[source], chains[target], source, target) for source, target in pairs}


def _settle(box: Box, above: list[Box], chains: dict[str, list[Box]]) -> None:
    """Turn places within groups into places in the picture, and note the groups around each operator, outer ones first."""
    if not box.children:
        chains[box.name] = [*above, box]
    for child in box.children:
        child.x = round(child.x + box.x, 1)
        child.y = round(child.y + box.y, 1)
        _settle(child, [*above, box], chains)


def _way(source: list[Box], target: list[Box], name: str, to: str) -> list[Point]:
    shared = sum(1 for a, b in zip(source[:-1], target[:-1], strict=False) if a is b)
    points: list[Point] = []
    for group in reversed(source[shared:-1]):
        points += _moved(group, group.routes.get((name, "")))
    points += _moved(source[shared - 1], source[shared - 1].routes.get((name, to)))
    for group in target[shared:-1]:
        points += _moved(group, group.routes.get((name, to)))
    if not points:
        a, b = source[-1], target[-1]
        points = [(a.x + a.width, a.y + a.height / 2), (b.x, b.y + b.height / 2)]
    kept = points[:1]
    for before, point, after in zip(points, points[1:], points[2:], strict=False):
        if not before[1] == point[1] == after[1]:
            kept.append(point)
    return kept + points[-1:] if len(points) > 1 else kept


def _moved(group: Box, points: list[Point] | None) -> list[Point]:
    return [(round(x + group.x, 1), round(y + group.y, 1)) for x, y in points or ()]


@attrs.define(eq=False)
class _Item:
    """A place in a layer: a box, a stream that passes the layer, or one that enters or leaves the group."""

    box: Box | None
    layer: int = 0
    y: float = 0.0
    before: list[tuple[_Item, float, float]] = attrs.field(factory=list)  # the neighbour, its port's offset, the own one's
    after: list[tuple[_Item, float, float]] = attrs.field(factory=list)

    @property
    def height(self) -> float:
        return self.box.height if self.box is not None else 0.0

    @property
    def space(self) -> float:
        return SPACE if self.box is not None else LANE


class _Group:
    """The layout of one group: its boxes, and the streams between them and through its borders."""

    def __init__(self, box: Box, edges: Sequence[tuple[str, str]]) -> None:
        self.box = box
        self.edges = edges
        _dissolve(box, edges)
        self.child_of = {leaf.name: child for child in box.children for leaf in child.leaves()}
        self.inner = [edge for edge in edges if edge[0] in self.child_of and edge[1] in self.child_of]
        self.entering = [edge for edge in edges if edge[0] not in self.child_of and edge[1] in self.child_of]
        self.leaving = list(dict.fromkeys(s for s, t in edges if s in self.child_of and t not in self.child_of))

    def place(self) -> None:
        """Lay out the groups in the box, then the box."""
        for child in self.box.children:
            if child.children:
                mine = {leaf.name for leaf in child.leaves()}
                _Group(child, [edge for edge in self.edges if edge[0] in mine or edge[1] in mine]).place()
        between = [(s, t) for s, t in self.inner if self.child_of[s] is not self.child_of[t]]
        layers = _layers(self.box.children, [(self.child_of[s], self.child_of[t]) for s, t in between])
        items = {id(child): _Item(child, layers[id(child)] + 1) for child in self.box.children}
        last = max((item.layer for item in items.values()), default=0) + 1
        columns: list[list[_Item]] = [[] for _ in range(last + 1)]
        for item in items.values():
            columns[item.layer].append(item)
        ways = self._ways(items, columns, between, last)
        _order(columns)
        _heights(columns)
        self._finish(columns, ways)

    def _ways(
        self, items: dict[int, _Item], columns: list[list[_Item]], between: list[tuple[str, str]], last: int
    ) -> dict[Key, list[_Item]]:
        """Return the items on the route of each stream. Streams of one source share a lane until they part."""
        lanes: dict[tuple[str, int], _Item] = {}
        linked: set[tuple[int, int, float, float]] = set()

        def lane(source: str, layer: int) -> _Item:
            if (source, layer) not in lanes:
                lanes[source, layer] = _Item(None, layer)
                columns[layer].append(lanes[source, layer])
            return lanes[source, layer]

        def way(source: str, start: _Item, end: _Item, target: str) -> list[_Item]:
            path = [start, *(lane(source, layer) for layer in range(start.layer + 1, end.layer)), end]
            for a, b in itertools.pairwise(path):
                out = _port(a.box, (source, ""), source)
                into = _port(b.box, (source, target), target)
                if (id(a), id(b), out, into) not in linked:
                    linked.add((id(a), id(b), out, into))
                    a.after.append((b, into, out))
                    b.before.append((a, out, into))
            return path

        ways: dict[Key, list[_Item]] = {}
        for source, target in between:
            start, end = items[id(self.child_of[source])], items[id(self.child_of[target])]
            if start.layer < end.layer:
                ways[source, target] = way(source, start, end, target)
        for source, target in self.entering:
            ways[source, target] = way(source, lane(source, 0), items[id(self.child_of[target])], target)
        for source in self.leaving:
            ways[source, ""] = way(source, items[id(self.child_of[source])], lane(source, last), "")
        return ways

    def _finish(self, columns: list[list[_Item]], ways: dict[Key, list[_Item]]) -> None:
        lefts, widths = [0.0], [max((i.box.width for i in column if i.box is not None), default=0.0) for column in columns]
        for number in range(1, len(columns)):
            gap = GAP if 1 < number < len(columns) - 1 else GAP / 2 if columns[0 if number == 1 else -1] else PAD
            lefts.append(lefts[-1] + widths[number - 1] + gap)
        title = TITLE if self.box.name else PAD
        top = min((item.y for column in columns for item in column), default=0.0) - title
        for column, left in zip(columns, lefts, strict=True):
            for item in column:
                item.y -= top
                if item.box is not None:
                    item.box.x, item.box.y = left, item.y
        self.box.width = lefts[-1]
        self.box.height = max((item.y + item.height for column in columns for item in column), default=0.0) + PAD
        for (source, target), path in ways.items():
            points: list[Point] = []
            for item in path:
                at, left = item.y, lefts[item.layer]
                if item is not path[0]:
                    points.append((left, at + _port(item.box, (source, target), target)))
                if item is not path[-1]:
                    out = at + _port(item.box, (source, ""), source)
                    if item.box is not None:
                        points.append((left + item.box.width, out))
                    points.append((left + widths[item.layer], out))
            self.box.routes[source, target] = list(dict.fromkeys(points))
            if not target:
                self.box.ports[source, ""] = points[-1][1]
            elif path[0].box is None:
                self.box.ports[source, target] = points[0][1]


def _port(box: Box | None, key: Key, leaf: str) -> float:
    """Return how far below the top of a box a stream meets it."""
    if box is None:
        return 0.0
    return box.height / 2 if box.name == leaf and not box.children else box.ports.get(key, box.height / 2)


def _dissolve(box: Box, edges: Sequence[tuple[str, str]]) -> None:
    """Put the boxes of a group into the one around it, where streams leave the group and come back."""
    while True:
        child_of = {leaf.name: child for child in box.children for leaf in child.leaves()}
        ends = [
            (child_of[s], child_of[t]) for s, t in edges if s in child_of and t in child_of and child_of[s] is not child_of[t]
        ]
        circle = _on_circles(box.children, ends)
        crossed = [child for child in box.children if child.children and id(child) in circle]
        if not crossed:
            return
        box.children = [inner for child in box.children for inner in (child.children if child is crossed[0] else [child])]


def _on_circles(boxes: Sequence[Box], edges: Sequence[tuple[Box, Box]]) -> set[int]:
    """Return the boxes on cycles and on paths between cycles: those left when sources and sinks are removed repeatedly."""
    left = {id(box) for box in boxes}
    for forward in (True, False):
        pairs = [(id(a), id(b)) if forward else (id(b), id(a)) for a, b in edges if id(a) in left and id(b) in left]
        incoming: dict[int, int] = defaultdict(int)
        following: dict[int, list[int]] = defaultdict(list)
        for a, b in pairs:
            incoming[b] += 1
            following[a].append(b)
        free = [each for each in left if not incoming[each]]
        while free:
            each = free.pop()
            left.discard(each)
            for other in following[each]:
                incoming[other] -= 1
                if not incoming[other]:
                    free.append(other)
    return left


def _layers(boxes: Sequence[Box], edges: Sequence[tuple[Box, Box]]) -> dict[int, int]:
    """Return the layer of each box: the longest way from a source; a source stands just before what it leads to."""
    following: dict[int, list[int]] = defaultdict(list)
    incoming: dict[int, int] = {id(box): 0 for box in boxes}
    for a, b in dict.fromkeys((id(a), id(b)) for a, b in edges):
        following[a].append(b)
        incoming[b] += 1
    sources = {each for each, count in incoming.items() if not count}
    layers = dict.fromkeys(incoming, 0)
    waiting = dict(incoming)
    free = [id(box) for box in boxes if not incoming[id(box)]]
    left = dict.fromkeys(incoming)
    while left:
        if not free:
            free = [next(iter(left))]  # of a circle, the first box comes first
        each = free.pop(0)
        if each not in left:
            continue
        del left[each]
        for other in following[each]:
            if other in left:
                layers[other] = max(layers[other], layers[each] + 1)
                waiting[other] -= 1
                if waiting[other] == 0:
                    free.append(other)
    for each in sources:
        if following[each]:
            layers[each] = max(0, min(layers[other] for other in following[each]) - 1)
    return layers


def _order(columns: list[list[_Item]]) -> None:
    """Order each layer by the means of its neighbours, from both sides in turn."""
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        places = {id(item): float(n) for column in columns for n, item in enumerate(column)}
        for column in columns if forward else reversed(columns):
            means = {}
            for n, item in enumerate(column):
                near = item.before if forward else item.after
                means[id(item)] = sum(places[id(o)] + p / (o.height + 1) for o, p, _ in near) / len(near) if near else float(n)
            column.sort(key=lambda item: means[id(item)])
            for n, item in enumerate(column):
                places[id(item)] = float(n)


def _heights(columns: list[list[_Item]]) -> None:
    """Give each item a height as near to its neighbours' as the order in its layer lets."""
    for column in columns:
        y = 0.0
        for item in column:
            item.y = y
            y += item.height + item.space
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wanted = []
            for item in column:
                near = [*item.before, *item.after] if sweep > 1 else item.before if sweep % 2 == 0 else item.after
                near = near or [*item.before, *item.after]
                wanted.append(sum(o.y + there - here for o, there, here in near) / len(near) if near else item.y)
            for item, y in zip(column, _spread(column, wanted), strict=True):
                item.y = round(y, 1)
    for column in columns:  # rounding must not make two of them overlap
        for above, below in itertools.pairwise(column):
            below.y = max(below.y, above.y + above.height + min(above.space, below.space))


def _spread(column: Sequence[_Item], wanted: Sequence[float]) -> list[float]:
    """Return the heights nearest to the wanted ones that keep order and distances: isotonic regression, pooling neighbours."""
    offsets, total = [], 0.0
    for n, item in enumerate(column):
        if n:
            above = column[n - 1]
            total += above.height + max(above.space, item.space)
        offsets.append(total)
    pools: list[list[float]] = []  # sum, number
    for n, y in enumerate(wanted):
        pools.append([y - offsets[n], 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] >= pools[-1][0] / pools[-1][1]:
            last = pools.pop()
            pools[-1][0] += last[0]
            pools[-1][1] += last[1]
    levels = [value / number for value, number in pools for _ in range(int(number))]
    return [level + offset for level, offset in zip(levels, offsets, strict=True)]
