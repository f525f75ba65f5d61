"""The rows that operators keep, as a log of segments: each window adds its changes, and merges a part of those before.

A table consists of the rows in the layers of its log; newer ones take precedence. Layers are merged in three ways, by the tasks
that write them, and never all at once:

- *Levels.* Small layers are merged like the digits of a number: if the last `fan_out - 1` layers have the same level, the next
  one also holds their rows, and replaces them one level higher.
- *Tops.* Once these small layers weigh `1/share` of what is alive (and `least_top`, or as much as is alive), the next layer
  replaces all of them.
- *Sweeps.* When the log weighs twice what the last sweep has left, or has more than `most` layers, a sweep begins. From then on,
  every top also merges `sweep` times its own weight of the whole log, in the order of the codes: the rows in the next range of
  codes move to a layer at the bottom, and the ranges of all other layers begin behind it. That changes references, not bytes.
  When all codes are swept, old values and removed keys are gone.

A row is written once when it changes, once for each level (at most 2 in practice), once in a top, and on average about once in
sweeps: 4 to 5 times. The log weighs at most 3.5 times what is alive, and has some hundreds of layers. A window writes at most
three times its own changes, and `3/share` of what is alive.

Changes of more than `piece` bytes are saved in pieces: one range of codes after the other, each in a segment of its own. Where
it is time for a sweep, the pieces also hold what all layers have in their ranges, and are the bottom. So neither such a window
nor its sweep takes the memory of more than a piece.

The newest segment is the beginning: a reference to it is all that a plan or decision keeps. Its index has a *manifest*, the
layers that count, or it names the segment before it, to which it adds its own layers. A partition that takes over the rows of
others begins with their manifests: it refers to their segments, and to the groups of keys in them that are its own. Where these
are few rows (`least_top`), its first window copies them.
"""

from __future__ import annotations

import base64
import heapq
import itertools
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs

from dagflow.model.types.keyed_rows import END, KeyedRows, Marks, edges, groups_of, merged
from dagflow.model.types.keys import GROUPS, KeyAssignment
from dagflow.model.types.spilled_rows import Runs
from dagflow.state.segment import Layer as NewLayer
from dagflow.state.segment import MapId, OpenSegment, SegmentRef, TableId, segments, weight_of, window_of, write
from dagflow.storage import Store, at_once, is_object_store

if TYPE_CHECKING:
    import numpy as np

TOP, BOTTOM = 9, 10
T = TypeVar("T")


class Retry(Protocol):
    """A function that calls an action, and repeats it after transient failures."""

    def __call__(self, window: int, doing: str, action: Callable[[], T]) -> T:
        """Return the result of the action."""
        ...


def once(window: int, doing: str, action: Callable[[], T]) -> T:
    """Return the result of an action."""
    return action()


@attrs.frozen
class Policy:
    """The parameters of a log; see the module. `least_top`, `slack`, `tiny`, `kept` and `piece` are numbers of bytes.

    `kept`: of rows that stay in memory from window to window, so that they need not be read.
    """

    fan_out: int = 64
    share: int = 128
    least_top: int = 64 << 10
    slack: int = 256 << 10
    tiny: int = 2 << 10
    most: int = 1000
    sweep: int = 2
    kept: int = 64 << 20
    piece: int = 64 << 20

    def top(self, live: int) -> int:
        """Return the weight of small layers from which on a top is written; for few rows, the weight of all."""
        return max(live // self.share, min(self.least_top, max(live, self.tiny)))

    def heavy(self, live: int) -> int:
        """Return the weight of the log that begins a sweep."""
        return 2 * live + min(self.slack, 4 * max(live, self.tiny))


@attrs.define(eq=False)
class Layer:
    """A layer that counts, as far as it does.

    Attributes:
        segment, number: the segment, and the place of the layer in it.
        start, stop: the range of codes that count.
        groups: the groups that count, as a mask; None: all. Only layers that were taken over have one.
        rows: the rows by table, while they are in memory.
    """

    segment: SegmentRef
    number: int
    level: int
    start: int
    stop: int
    weight: int
    groups: np.ndarray[Any, Any] | None = None
    rows: Mapping[TableId, KeyedRows] | None = None

    def trim(self, start: int) -> bool:
        """Let codes before `start` not count any more. Return whether any are left."""
        if start > self.start:
            self.weight = self.weight * max(0, self.stop - start) // (self.stop - self.start)
            self.start = start
        return self.start < self.stop


class StateLog:
    """The tables of a driver, or of an operator in one partition, saved window by window.

    Args:
        retry: calls the actions that read or write, with the window and a phrase for messages; it may repeat them.

    Attributes:
        store: where the segments are.
        newest: the newest segment; None while there is none.
        columns: the columns of the tables, as names and types. Older rows may have fewer.
    """

    def __init__(self, store: Store, policy: Policy | None = None, retry: Retry = once) -> None:
        self.store = store
        self.newest: SegmentRef | None = None
        self.columns: dict[TableId, list[list[str]]] = {}
        self._policy = policy or Policy()
        self._retry = retry
        self._window = -1
        self._layers: list[Layer] = []  # those that count, the older ones first
        self._links: list[SegmentRef] = []  # the segments from the last manifest on
        self._since: dict[TableId, int] = {}  # the window at which a table began
        self._groups: np.ndarray[Any, Any] | None = None  # those of the partition
        self._must_write = False
        self._cursor: int | None = None  # of the sweep: lower codes are swept
        self._open: dict[str, OpenSegment] = {}
        self._dead: list[tuple[int, str]] = []  # a heap of (the window from which on a segment does not count, its name)
        self._dead_from: dict[str, int] = {}  # the same by name; a segment that is not in it counts again

    @property
    def weight(self) -> int:
        """About the number of bytes of the layers that count."""
        return sum(layer.weight for layer in self._layers)

    @property
    def layers(self) -> int:
        """The number of layers that count."""
        return len(self._layers)

    @property
    def needed(self) -> dict[str, SegmentRef]:
        """The segments that the newest one needs, itself included, by name."""
        return {ref.name: ref for ref in (*(layer.segment for layer in self._layers), *self._links)}

    @property
    def own(self) -> set[str]:
        """The names of the needed segments that no other partition needs."""
        shared = {layer.segment.name for layer in self._layers if layer.groups is not None}
        return {name for name in self.needed if name not in shared}

    @property
    def shares(self) -> bool:
        """True if other partitions may need some of its segments."""
        return any(layer.groups is not None for layer in self._layers)

    @property
    def has_manifest(self) -> bool:
        """True if the newest segment has the manifest."""
        return len(self._links) == 1

    # Beginning

    def restore(self, newest: SegmentRef | None, window: int, ids: Collection[MapId] | None = None) -> None:
        """Begin with the tables after a window. Called at most once.

        Tables that are not in `ids` are dropped: a later one of the same name begins empty.
        Raises SegmentMissing, SegmentDamaged.
        """
        self._window = window
        if newest is not None:
            self._begin(newest, ids)

    def take_over(self, chains: Iterable[SegmentRef], window: int, ids: Collection[MapId], groups: np.ndarray[Any, Any]) -> None:
        """Begin with the rows of some groups (a mask) that other logs have; these have no group in common."""
        import numpy as np

        self._window, self._groups = window, groups
        for newest in chains:
            other = StateLog(self.store, self._policy, self._retry)
            other.restore(newest, window, ids)
            self._open |= other._open
            for layer in other._layers:
                masks = [mask for mask in (layer.groups, other._groups) if mask is not None]
                mine = np.logical_and.reduce([groups, *masks])
                layer.groups, layer.level = mine, max(layer.level, TOP)
                layer.weight = int(layer.weight * mine.mean())
                if mine.any():
                    self._add_part(layer)
            for table, since in other._since.items():
                self._since[table] = min(since, self._since.get(table, since))
            self.columns |= other.columns
            self._must_write = True

    def _add_part(self, part: Layer) -> None:
        """Add a layer with some groups; other logs may have had other groups of the same."""
        for layer in self._layers:
            if (layer.segment, layer.number, layer.start, layer.stop) == (part.segment, part.number, part.start, part.stop):
                assert layer.groups is not None
                layer.groups = layer.groups | part.groups
                layer.weight += part.weight
                return
        self._layers.append(part)

    def _begin(self, newest: SegmentRef, ids: Collection[MapId] | None) -> None:
        self.newest = newest
        links, ref = [newest], newest
        while (head := self._opened(ref).index.head)["manifest"] is None:
            ref = SegmentRef(*head["previous"])
            links.append(ref)
        self._links = links[::-1]
        tables = self._opened(newest).index.head["tables"]
        for operator, state, kind, since, columns in tables:
            if ids is None or (operator, state) in ids:
                self._since[operator, state, kind] = since
                self.columns[operator, state, kind] = columns
        self._must_write = len(self._since) < len(tables)
        manifest = head["manifest"]
        self._cursor = manifest["cursor"]
        masks = [mask_of(text) for text in manifest["masks"]]
        self._groups = None if manifest["groups"] is None else mask_of(manifest["groups"])
        named = [SegmentRef(*each) for each in manifest["segments"]]
        for segment, number, level, start, stop, weight, mask in manifest["layers"]:
            groups = None if mask is None else masks[mask]
            self._layers.append(Layer(named[segment], number, level, start, stop, weight, groups))
        for each in self._links:
            self._layers += self._own_layers(each)

    def _own_layers(self, ref: SegmentRef) -> list[Layer]:
        layers = self._opened(ref).index.layers
        return [Layer(ref, n, each.level, each.start, each.stop, each.weight) for n, each in enumerate(layers)]

    def _opened(self, ref: SegmentRef) -> OpenSegment:
        if (known := self._open.get(ref.name)) is None:
            retry: Any = partial(self._retry, self._window, "reading its state")
            known = self._open[ref.name] = OpenSegment(self.store, ref, self._window, retry)
        return known

    # Reading

    def find(self, table: TableId, codes: np.ndarray[Any, Any], keys: Any) -> list[tuple[np.ndarray[Any, Any], KeyedRows, Any]]:
        """Return the rows of keys: the places of keys, rows, and the numbers of their rows. `codes`: of the keys, sorted.

        Only the blocks that may have them are read. Raises SegmentMissing, SegmentDamaged.
        """
        import numpy as np

        matches = []
        waiting, is_open = np.arange(len(codes)), np.ones(len(codes), dtype=bool)
        for layer in reversed(self._layers) if table in self._since else ():
            if not len(waiting):
                break
            asked = self._covered(layer, codes, waiting)
            if not len(asked) or layer.segment.window < self._since[table]:
                continue
            if layer.rows is None and layer.segment.name not in self._open and is_object_store(self.store.url):
                # other layers may be asked, too: their indexes and filters, which hardly any lookup does without, come along
                saved = [each for each in self._layers if each.rows is None and len(self._covered(each, codes, waiting))]
                near = {each.segment.name: each for each in saved}
                at_once(lambda each: self._near(each, table, codes[:0]), near.values(), self.store.url)
            rows = layer.rows.get(table) if layer.rows is not None else self._near(layer, table, codes[asked])
            if rows is None:
                continue
            at = rows.find(codes[asked], keys, asked)
            is_hit = at >= 0
            if is_hit.any():
                hits, at = asked[is_hit], at[is_hit]
                is_open[hits] = False
                waiting = np.flatnonzero(is_open)
                there = ~rows.removed[at]
                matches.append((hits[there], rows, at[there]))
        return matches

    def rows(self, table: TableId, start: int = 0, stop: int = END) -> KeyedRows | None:
        """Return all rows of a table with codes in `[start, stop)`, in their order; None where there are none."""
        parts = [rows for layer in self._layers for rows in self._within(layer, table, start, stop)]
        return merged(parts).without_removed() if parts else None

    def marks(self, table: TableId) -> Marks:
        """Return the codes of some of the rows of a table, and about the bytes of those from each to the next one."""
        import numpy as np

        parts: list[Marks] = []
        for layer in self._layers if table in self._since else ():
            if layer.rows is not None:
                parts += [layer.rows[table].marks()] if table in layer.rows else []
            elif (of_table := self._opened(layer.segment).index.layers[layer.number].tables.get(table)) is not None:
                blocks = of_table.blocks
                blocks = blocks[(blocks["code"] >= np.uint64(layer.start)) & (blocks["code"] <= np.uint64(layer.stop - 1))]
                parts.append((blocks["code"], (blocks["stop"] - blocks["start"]).astype(float)))
        codes = np.concatenate([np.zeros(0, np.uint64), *(codes for codes, _ in parts)])
        return codes, np.concatenate([np.zeros(0), *(weights for _, weights in parts)])

    def tables(self, map_id: MapId) -> list[TableId]:
        """Return the tables of a state, one for each type of keys that it has."""
        return [table for table in self._since if table[:2] == map_id]

    def read_all(self) -> None:
        """Read all segments at once, since all rows are needed, and check them."""
        for ref in self.needed.values():
            self._opened(ref).check()

    def forget_content(self) -> None:
        """Free the bytes of `read_all`."""
        self._open = {ref.name: known.closed() for ref in self.needed.values() if (known := self._open.get(ref.name))}

    def _covered(self, layer: Layer, codes: np.ndarray[Any, Any], waiting: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return those of the waiting places whose codes count in a layer."""
        import numpy as np

        if layer.start or layer.stop < END:
            some = codes[waiting]
            first = np.searchsorted(some, np.uint64(layer.start))
            last = len(some) if layer.stop >= END else np.searchsorted(some, np.uint64(layer.stop))
            waiting = waiting[first:last]
        return waiting if layer.groups is None else waiting[layer.groups[groups_of(codes[waiting])]]

    def _near(self, layer: Layer, table: TableId, codes: np.ndarray[Any, Any]) -> KeyedRows | None:
        return self._opened(layer.segment).rows_near(layer.number, table, codes)

    def _within(self, layer: Layer, table: TableId, start: int, stop: int) -> Iterator[KeyedRows]:
        """Yield the rows of a layer that count, in a range of codes."""
        start, stop = max(start, layer.start), min(stop, layer.stop)
        if start >= stop or table not in self._since or layer.segment.window < self._since[table]:
            return
        if layer.rows is not None:
            parts: Iterable[KeyedRows] = [layer.rows[table].between(start, stop)] if table in layer.rows else []
        else:
            parts = self._opened(layer.segment).rows(layer.number, table, start, stop)
        for rows in parts:
            some = rows if layer.groups is None else rows.where(layer.groups[groups_of(rows.codes)])
            if len(some):
                yield some

    # Saving

    def save(self, window: int, changes: Mapping[TableId, KeyedRows | Runs]) -> SegmentRef | None:
        """Save changes durably, before the plan or decision of a window. Return the newest segment; None if there is none yet.

        Windows come in order; one may come again if its plan was not published. Raises StorageError.
        """
        self._window = window
        changes = {table: rows for table, rows in changes.items() if len(rows)}
        if not changes and not self._must_write:
            return self.newest
        for table, rows in changes.items():
            self._since.setdefault(table, window)
            self.columns[table] = rows.columns
        before = self.needed
        if weight_of(changes) > self._policy.piece:
            self._save_in_pieces(window, changes)
        else:
            self._save_at_once(window, {table: rows.between(0, END) for table, rows in changes.items()})
        self._must_write = False
        needed = self.needed
        for name in before:
            if name not in needed:
                self._bury(name, window)
                self._open.pop(name, None)
        self._bound()
        return self.newest

    def _save_at_once(self, window: int, changes: Mapping[TableId, KeyedRows]) -> None:
        """Save changes as one segment."""
        weight = weight_of(changes)
        is_small = self._must_write and self.shares and self.weight <= self._policy.least_top  # rows rather than references
        count, level = (0, BOTTOM) if is_small else self._replaced(weight)
        stay = self._layers[:count]
        content = self._merged(self._layers[count:], changes, keep_removed=bool(stay))
        new: list[NewLayer] = [(level, 0, END, content)]
        if level == TOP:
            new, stay = self._swept(stay, content)
        self._layers = [*stay, *self._write(window, new, stay, is_whole=level > 0 or not self._links or self._must_write)]

    def _save_in_pieces(self, window: int, changes: Mapping[TableId, KeyedRows | Runs]) -> None:
        """Save changes range by range, as several segments."""
        weight, pieces = weight_of(changes), list[Layer]()
        is_sweep = self._is_heavy(self._layers, weight)
        marks = [rows.marks() for rows in changes.values()]
        if is_sweep:
            marks, self._cursor = [*marks, *map(self.marks, self._since)], None
        ranges = {*edges(marks, self._policy.piece)}
        if self._cursor is not None:
            ranges.add(self._cursor)
        for start, stop in itertools.pairwise(sorted(ranges)):
            some = {table: rows.between(start, stop) for table, rows in changes.items()}
            content = self._merged(self._layers if is_sweep else (), some, keep_removed=not is_sweep, start=start, stop=stop)
            if is_sweep:
                self._layers = [layer for layer in self._layers if layer.trim(stop)]
            if stop == END or any(map(len, content.values())):
                level = BOTTOM if is_sweep else TOP
                for each in self._write(window, [(level, start, stop, content)], [*self._layers, *pieces], is_whole=True):
                    each.rows = None
                    pieces.append(each)
        self._layers = [*self._layers, *pieces]

    def _write(self, window: int, new: Sequence[NewLayer], stay: Sequence[Layer], *, is_whole: bool) -> list[Layer]:
        """Write layers as the newest segment, beside those that stay, and return them."""
        head = {
            "window": window,
            "tables": [[*table, since, self.columns[table]] for table, since in self._since.items()],
            "manifest": self._manifest(stay) if is_whole else None,
            "previous": None if is_whole or self.newest is None else list(attrs.astuple(self.newest)),
        }
        new = [each for each in new if any(map(len, each[3].values()))]
        self.newest = self._retry(window, "saving its state", partial(write, self.store, window, head, new))
        self._links = [self.newest] if is_whole else [*self._links, self.newest]
        self._dead_from.pop(self.newest.name, None)  # a launch that died before its plan wrote the same segment
        return [
            Layer(self.newest, number, level, start, stop, weight_of(rows), rows=rows)
            for number, (level, start, stop, rows) in enumerate(new)
        ]

    def _replaced(self, weight: int) -> tuple[int, int]:
        """Return the number of layers that stay when the next one replaces the others, and the level of the next one."""
        start = len(self._layers)
        tail = 0
        while start and self._layers[start - 1].level < TOP:
            start -= 1
            tail += self._layers[start].weight
        if tail + weight >= self._policy.top(self._live()):
            return start, TOP
        stop, level = len(self._layers), 0
        while True:
            run = stop
            while run > start and self._layers[run - 1].level == level:
                run -= 1
            if stop - run < self._policy.fan_out - 1:
                return stop, level
            stop, level = run, min(level + 1, TOP - 1)

    def _live(self) -> int:
        """Return about the number of bytes that are alive: what the last sweep has left."""
        return sum(layer.weight for layer in self._layers if layer.level == BOTTOM) or self.weight

    def _merged(
        self,
        layers: Sequence[Layer],
        changes: Mapping[TableId, KeyedRows],
        *,
        keep_removed: bool,
        start: int = 0,
        stop: int = END,
    ) -> dict[TableId, KeyedRows]:
        """Return the rows of layers and changes together, in a range of codes."""
        by_table: dict[TableId, list[KeyedRows]] = {}
        for layer in layers:
            for table in self._since:
                by_table.setdefault(table, []).extend(self._within(layer, table, start, stop))
        for table, rows in changes.items():
            by_table.setdefault(table, []).append(rows.between(start, stop))
        together = {table: merged(rows) for table, rows in by_table.items() if rows}
        return together if keep_removed else {table: rows.without_removed() for table, rows in together.items()}

    def _swept(self, stay: list[Layer], top: dict[TableId, KeyedRows]) -> tuple[list[NewLayer], list[Layer]]:
        """Sweep a range of codes, if it is time. Return the layers to write, and the others that still count."""
        weight = weight_of(top)
        if self._cursor is None and self._is_heavy(stay, weight):
            self._cursor = 0
        if self._cursor is None:
            return [(TOP, 0, END, top)], stay
        cursor = self._cursor
        left = sum(
            layer.weight * (layer.stop - max(layer.start, cursor)) // (layer.stop - layer.start)
            for layer in stay
            if layer.stop > cursor
        )
        budget = self._policy.sweep * weight
        stop = END if left <= budget else cursor + (END - cursor) * budget // left
        bottom = self._merged([layer for layer in stay if layer.stop > cursor], top, keep_removed=False, start=cursor, stop=stop)
        new: list[NewLayer] = [(BOTTOM, cursor, stop, bottom)]
        for start, end in ((0, cursor), (stop, END)):
            if start < end:
                new.append((TOP, start, end, {table: rows.between(start, end) for table, rows in top.items()}))
        stay = [layer for layer in stay if layer.stop <= cursor or layer.trim(stop)]
        self._cursor = None if stop == END else stop
        return new, stay

    def _is_heavy(self, layers: Sequence[Layer], weight: int) -> bool:
        """Return whether it is time for a sweep, with so many bytes more."""
        before = sum(layer.weight for layer in layers)
        return before + weight > self._policy.heavy(self._live_of(layers)) or len(layers) >= self._policy.most

    def _live_of(self, layers: Sequence[Layer]) -> int:
        return sum(layer.weight for layer in layers if layer.level == BOTTOM)

    def _manifest(self, layers: Sequence[Layer]) -> dict[str, Any]:
        """Return the layers that count, but for those of the segment itself, as plain data."""
        places: dict[SegmentRef, int] = {}
        masks: dict[str, int] = {}
        listed = []
        for each in layers:
            mask = None if each.groups is None else masks.setdefault(text_of(each.groups), len(masks))
            place = places.setdefault(each.segment, len(places))
            listed.append([place, each.number, each.level, each.start, each.stop, each.weight, mask])
        return {
            "segments": [list(attrs.astuple(ref)) for ref in places],
            "layers": listed,
            "masks": list(masks),
            "groups": None if self._groups is None else text_of(self._groups),
            "cursor": self._cursor,
        }

    def _bound(self) -> None:
        """Keep the rows of the newest layers in memory only, as far as `kept` allows."""
        size = 0
        for layer in reversed(self._layers):
            size += layer.weight if layer.rows is not None else 0
            if size > self._policy.kept:
                layer.rows = None

    # Sweeping away

    def bury_unknown(self, window: int) -> None:
        """Note the segments in the store that do not count: their windows have no plan. They stay until these have one."""
        needed = self.needed
        for name in self._retry(window, "listing segments of its state", partial(segments, self.store)):
            if name not in needed:
                self._bury(name, max(window, window_of(name)))

    def sweep(self, needed_from: int) -> int:
        """Remove the segments that no window from `needed_from` on needs, and return their number."""
        count = 0
        while self._dead and self._dead[0][0] <= needed_from:
            since, name = heapq.heappop(self._dead)
            if self._dead_from.get(name) == since:
                del self._dead_from[name]
                self._retry(needed_from, "removing old segments of its state", partial(self.store.discard, name))
                count += 1
        return count

    def _bury(self, name: str, since: int) -> None:
        self._dead_from[name] = since
        heapq.heappush(self._dead, (since, name))


def groups_of_partition(keys: KeyAssignment, partition: int) -> np.ndarray[Any, Any]:
    """Return the mask of the groups of a partition."""
    import numpy as np

    mask: np.ndarray[Any, Any] = keys.of_groups(np.arange(GROUPS)) == partition
    return mask


def text_of(mask: np.ndarray[Any, Any]) -> str:
    """Return a mask of groups as text, which `mask_of` inverts."""
    import numpy as np

    return base64.b64encode(zlib.compress(np.packbits(mask).tobytes(), 9)).decode()


def mask_of(text: str) -> np.ndarray[Any, Any]:
    """Return the mask of groups that a text stands for."""
    import numpy as np

    packed = zlib.decompressobj().decompress(base64.b64decode(text), GROUPS // 8)
    return np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=GROUPS).astype(bool)


def check_segments(store: Store, newest: SegmentRef, window: int) -> None:
    """Read and check all segments that a window has left. Raises SegmentMissing, SegmentDamaged."""
    log = StateLog(store)
    log.restore(newest, window)
    log.read_all()
