"""Declarations of state: `WindowState` within a window of a task, `State` over windows. All other fields are frozen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from dagflow.model.errors.running import FieldFrozen, StateDeclaration

if TYPE_CHECKING:
    from typing import Self

V = TypeVar("V")
_MISSING: Any = object()


class StateField(Generic[V]):
    """A value that an operator declares at class level and may assign while it runs.

    Args:
        default: the value to begin with; immutable. What is mutable comes from `factory`.
        factory: makes the value to begin with: `WindowState(factory=dict)`.
    """

    name = "?"

    def __init__(self, default: V = _MISSING, *, factory: Callable[[], V] | None = None) -> None:
        if (default is _MISSING) == (factory is None):
            raise StateDeclaration(declaration=type(self).__name__, reason="give either a default or a factory")
        if isinstance(default, list | dict | set | bytearray):
            kind = type(default).__name__
            raise StateDeclaration(declaration=type(self).__name__, reason=f"a {kind} would be shared: write factory={kind}")
        self._default = default
        self._factory = factory

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def initial(self) -> V:
        """Return a fresh value to begin with."""
        return self._default if self._factory is None else self._factory()

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> V: ...
    def __get__(self, instance: object | None, owner: type) -> Self | V:
        if instance is None:
            return self
        value = self.initial()
        instance.__dict__[self.name] = value  # no data descriptor: from now on the instance's own value is found first
        return value

    if TYPE_CHECKING:

        def __set__(self, instance: object, value: V) -> None: ...


class WindowState(StateField[V]):
    """A value within one window of one task: it starts from its default in every window and task.

    >>> from dagflow import Operator, WindowState
    >>> class Numbered(Operator):
    ...     seen = WindowState(0)
    >>> Numbered().seen
    0
    """


class State(StateField[V]):
    """A value over windows, saved with the window and restored after a crash. Plain data only.

    Plain data: None, bool, int, float, str, bytes, and lists, tuples, string-keyed dicts and attrs classes of these.

    An operator on the driver (an input operator, and the operators up to the first partitioned one) has one value. An operator in
    tasks has one in each partition. Since the number of partitions changes from window to window, it needs a `merge`: a function
    that makes one value of a list of values, in the order of their partitions, such as `sum` or `max`. With m partitions before
    and n now, partition p begins with the merged values of the partitions q with `q % n == p`, or with the default when there
    are none.

    >>> from dagflow import Operator, State
    >>> class Counted(Operator):
    ...     count = State(0, merge=sum)
    >>> Counted().count
    0
    """

    def __init__(
        self, default: V = _MISSING, *, factory: Callable[[], V] | None = None, merge: Callable[[list[V]], V] | None = None
    ) -> None:
        super().__init__(default, factory=factory)
        if merge is not None and not callable(merge):
            raise StateDeclaration(declaration="State", reason=f"merge is {merge!r}: give a function of a list of values")
        self.merge = merge

    def with_merge(self) -> str:
        """Return the declaration as a line of source, with a `merge` that fits the value: for error messages."""
        value = self.initial()
        kind = getattr(self, "__orig_class__", None)
        subscript = str(kind).partition("State")[2].replace("builtins.", "") if kind is not None else ""
        begin = repr(self._default) if self._factory is None else f"factory={getattr(self._factory, '__name__', '…')}"
        return f"{self.name} = State{subscript}({begin}, merge={_MERGES.get(type(value), 'merged')})"


_MERGES = {
    bool: "any",
    int: "sum",
    float: "sum",
    str: "max",
    list: "lambda parts: [item for part in parts for item in part]",
}


def state_fields(cls: Any) -> dict[str, StateField[Any]]:
    """Return the declarations of a class and its bases by name."""
    return _state_fields(cls)


@functools.cache
def _state_fields(cls: Any) -> dict[str, StateField[Any]]:
    fields: dict[str, StateField[Any]] = {}
    for klass in reversed(cls.__mro__):
        fields.update({name: value for name, value in vars(klass).items() if isinstance(value, StateField)})
    return fields


@functools.cache
def _frozen(cls: Any) -> type:
    allowed = frozenset(state_fields(cls))

    def assign(self: Any, name: str, value: Any) -> None:
        if name not in allowed:
            raise FieldFrozen(operator=cls.__name__, field=name)
        object.__setattr__(self, name, value)

    def delete(self: Any, name: str) -> None:
        raise FieldFrozen(operator=cls.__name__, field=name)

    body = {
        "__slots__": (),
        "__setattr__": assign,
        "__delattr__": delete,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "_dagflow_frozen_from": cls,
    }
    return type(cls.__name__, (cls,), body)


def _class(operator: object) -> Any:
    return type(operator)


def freeze(operator: object) -> None:
    """Freeze the fields of an operator: from now on, only declared state may be assigned."""
    object.__setattr__(operator, "__class__", _frozen(_class(operator)))  # past validators and whatever else watches fields


def thaw(operator: object) -> None:
    """Undo `freeze`, for `teardown`."""
    object.__setattr__(operator, "__class__", getattr(type(operator), "_dagflow_frozen_from", type(operator)))


def renew(operator: object) -> None:
    """Begin a window: every `WindowState` of `operator` starts anew."""
    for name, declared in state_fields(type(operator)).items():
        if isinstance(declared, WindowState):
            operator.__dict__[name] = declared.initial()
