"""`MapState`: a mapping over windows of which each window saves only what it changed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_args, overload

import attrs

from dagflow.model.errors.running import StateDeclaration
from dagflow.model.operator.state import State
from dagflow.model.types.snapshots import SAMPLES, ValueSample, is_immutable, snapshot

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values
    from typing import Self

K = TypeVar("K", bound=str | int)
V = TypeVar("V")
T = TypeVar("T")


class Absent(enum.Enum):
    """The value of a key that is absent."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
_UNCHANGEABLE = frozenset({str, int, bool, bytes, type(None)})


@attrs.frozen
class Changes(Generic[K, V]):
    """The changes of a map since it was last saved.

    Attributes:
        assigned: the keys with other values, or that are new, and their values.
        removed: the keys that are gone.
        before: what these keys had when the map was last saved; new ones are not in it.
    """

    assigned: dict[K, V]
    removed: list[K]
    before: dict[K, V]


class TrackedDict(dict[K, V]):
    """The value of a `MapState`: a dict that knows which keys have changed since it was last saved.

    What is saved is what was assigned: a value that is changed in place (`map[key].append(1)`) must be assigned again.

    >>> kept = TrackedDict({"a": 1, "b": 2})
    >>> kept["a"], kept["c"] = 10, 3
    >>> del kept["b"], kept["c"]
    >>> kept.changes()
    Changes(assigned={'a': 10}, removed=['b'], before={'a': 1, 'b': 2})
    >>> kept.saved()
    >>> kept.changes()
    Changes(assigned={}, removed=[], before={})
    """

    __slots__ = ("_before", "_left_to_sample", "_samples", "_undo")

    def __init__(self, saved: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(saved)
        self._before: dict[K, V | Absent] = {}  # by the keys that were touched, in the order in which they were
        self._undo: list[tuple[K, V | Absent]] | None = None
        self._samples: dict[K, ValueSample] = {}  # of values that were read before they were assigned
        self._left_to_sample = 0

    def changes(self) -> Changes[K, V]:
        """Return the changes since it was last saved. A key that has its old value again does not count."""
        changes: Changes[K, V] = Changes({}, [], {})
        for key, before in self._before.items():
            now = self.get(key, ABSENT)
            if now is ABSENT:
                if before is ABSENT:
                    continue
                changes.removed.append(key)
            else:
                if type(now) in _UNCHANGEABLE and type(now) is type(before) and now == before:
                    continue
                changes.assigned[key] = now
            if before is not ABSENT:
                changes.before[key] = before
        return changes

    def saved(self) -> None:
        """Forget the changes, since they are saved."""
        self._before = {}
        self._undo = None
        self.watch()

    def watch(self) -> None:
        """Look after the values that are read next: until the next save, they may change only by being assigned."""
        self._samples, self._left_to_sample = {}, SAMPLES
        object.__setattr__(self, "__class__", _WatchedDict)

    def changed_in_place(self) -> K | Absent:
        """Return the first key that was read and whose value has changed without being assigned; else ABSENT."""
        for key, sample in self._samples.items():
            if key not in self._before and dict.get(self, key) is sample.value and sample.has_changed():
                return key
        return ABSENT

    def savepoint(self) -> int:
        """Return a savepoint to roll back to until the next save. It costs nothing, but each change after it is noted."""
        if self._undo is None:
            self._undo = []
        return len(self._undo)

    def roll_back(self, to: int) -> None:
        """Restore the content at a savepoint."""
        undo = self._undo or []
        while len(undo) > to:
            key, value = undo.pop()
            if value is ABSENT:
                super().pop(key, None)
            else:
                super().__setitem__(key, value)

    def replace(self, content: Mapping[K, V]) -> None:
        """Replace the whole content. Equal entries count as unchanged."""
        if content is not self:
            for key in [key for key in self if key not in content]:
                del self[key]
            self.update(content)

    def _touch(self, key: K) -> None:
        if key not in self._before:
            self._before[key] = self.get(key, ABSENT)
        if self._undo is not None:
            self._undo.append((key, self.get(key, ABSENT)))

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self._before or self._undo is not None:
            self._touch(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        if key in self:
            self._touch(key)
        super().__delitem__(key)

    @overload
    def pop(self, key: K, /) -> V: ...
    @overload
    def pop(self, key: K, default: V, /) -> V: ...
    @overload
    def pop(self, key: K, default: T, /) -> V | T: ...
    def pop(self, key: K, /, *default: Any) -> Any:
        """See `dict`."""
        if key in self:
            self._touch(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[K, V]:
        """See `dict`."""
        if not self:
            return super().popitem()  # raises
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """See `dict`."""
        for key in self:
            self._touch(key)
        super().clear()

    def setdefault(self, key: K, default: V = None, /) -> V:  # type: ignore[assignment]  # as of dict
        """See `dict`."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **more: Any) -> None:
        """See `dict`."""
        given: dict[Any, Any] = dict(*others, **more)
        for key, value in given.items():
            self[key] = value

    def __ior__(self, other: Any) -> Self:  # type: ignore[override,misc]  # mypy wants both of dict's overloads
        self.update(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (dict(self), dict(self._before))


class _WatchedDict(TrackedDict[K, V]):
    """A dict that takes samples of the first values that are read; then it becomes a `TrackedDict`, whose reads cost nothing."""

    __slots__ = ()

    def _read(self, key: K, value: V) -> None:
        if key not in self._samples:
            self._samples[key] = ValueSample(value, snapshot(value))
        self._left_to_sample -= 1
        if not self._left_to_sample or is_immutable(value):
            object.__setattr__(self, "__class__", TrackedDict)

    def __getitem__(self, key: K) -> V:
        value = super().__getitem__(key)
        self._read(key, value)
        return value

    def get(self, key: K, default: Any = None, /) -> Any:
        """See `dict`."""
        value = super().get(key, ABSENT)
        if value is ABSENT:
            return default
        self._read(key, value)
        return value

    def items(self) -> dict_items[K, V]:
        """See `dict`."""
        for key, value in islice(dict.items(self), self._left_to_sample):
            _WatchedDict._read(self, key, value)  # it may become a `TrackedDict` meanwhile
        return dict.items(self)

    def values(self) -> dict_values[K, V]:
        """See `dict`."""
        self.items()
        return dict.values(self)


def _remade(content: dict[Any, Any], before: dict[Any, Any]) -> TrackedDict[Any, Any]:
    made: TrackedDict[Any, Any] = TrackedDict(content)
    made._before = before
    return made


class KeyedState(State[V]):
    """The base of states that have an entry for each key: of operators whose input is partitioned by key, or on the driver."""

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        try:
            return instance.__dict__[self.name]
        except KeyError:
            value = instance.__dict__[self.name] = self.initial()
        return value


class MapState(KeyedState["TrackedDict[K, V]"], Generic[K, V]):
    """A mapping over windows; however large it is, a window saves only the keys that it has assigned or removed.

    Keys are strings or integers, values plain data (see `State`), which are saved when they are assigned: a value that is changed
    in place must be assigned again. Begins empty. After a restart the keys may come in another order.

    In tasks, only operators whose input is partitioned by key have one: each partition has the entries of its keys.

    >>> from dagflow import InputOperator, MapState
    >>> class Polled(InputOperator):
    ...     etags = MapState[str, str]()
    >>> polled = Polled()
    >>> polled.etags["https://example.org/a"] = "33a64df5"
    >>> polled.etags
    {'https://example.org/a': '33a64df5'}

    Args:
        partition_by: for operators whose entries have other keys than their records: a function from the key of an entry to the
            key of the records that it goes with.
    """

    def __init__(self, *, partition_by: Callable[[K], object] | None = None, merge: object = None) -> None:
        super().__init__(factory=TrackedDict)
        if merge is not None:
            reason = "merge is not supported: partition the operator by key, or write State(factory=dict, merge=…)"
            raise StateDeclaration(declaration="MapState", reason=reason)
        if partition_by is not None and not callable(partition_by):
            raise StateDeclaration(declaration="MapState", reason=f"partition_by is {partition_by!r}: give a function")
        self.partition_by = partition_by

    def with_merge(self) -> str:
        """Return the declaration of a State that keeps the same entries as a whole, with a `merge`: for error messages."""
        subscript = str(getattr(self, "__orig_class__", "")).partition("MapState")[2].replace("builtins.", "")
        return f"{self.name} = State[dict{subscript}](factory=dict, merge=merged)"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> TrackedDict[K, V]: ...
    def __get__(self, instance: object | None, owner: type) -> Self | TrackedDict[K, V]:
        value: Self | TrackedDict[K, V] = super().__get__(instance, owner)
        return value

    def __set__(self, instance: object, value: Mapping[K, V]) -> None:
        if not isinstance(value, Mapping):
            raise TypeError(f"{self.name!r} is a MapState: assign a mapping, not a {type(value).__qualname__}")
        self.__get__(instance, type(instance)).replace(value)


def type_arguments(declared: State[Any]) -> tuple[Any, ...]:
    """Return the types that a declaration names: of `State[T]` T, of `MapState[K, V]` K and V.

    Where it names none, the attrs class of the value that it begins with, else `Any`.
    """
    named = get_args(getattr(declared, "__orig_class__", None))
    if named or isinstance(declared, MapState):
        return named or (Any, Any)
    begin = type(declared.initial())
    return (begin if attrs.has(begin) else Any,)
