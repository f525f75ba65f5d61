"""`scanner.trigger`: a property to set, and a call; both reach the scanners that run in this process."""

from __future__ import annotations

from typing import Protocol, overload


class Triggered(Protocol):
    """An object that can be asked for a scan, and passes that on to the running ones."""

    def scan_now(self) -> None:
        """Ask for a scan."""
        ...


class Trigger:
    """The value of `scanner.trigger`: called, it asks for a scan; as a truth value, it is what was set before the launch."""

    def __init__(self, scanner: Triggered, is_set: bool) -> None:
        self._scanner, self._is_set = scanner, is_set

    def __call__(self) -> None:
        """Ask for a scan now; when one is under way, for another one right after it. May be called from any thread."""
        self._scanner.scan_now()

    def __bool__(self) -> bool:
        return self._is_set

    def __repr__(self) -> str:
        return repr(self._is_set)


class TriggerProperty:
    """The descriptor behind it: `scanner.trigger = True` asks for a scan."""

    @overload
    def __get__(self, scanner: None, owner: type) -> TriggerProperty: ...
    @overload
    def __get__(self, scanner: Triggered, owner: type) -> Trigger: ...
    def __get__(self, scanner: Triggered | None, owner: type) -> Trigger | TriggerProperty:
        return self if scanner is None else Trigger(scanner, bool(scanner.__dict__.get("_trigger")))

    def __set__(self, scanner: Triggered, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"trigger is {value!r}, but must be true or false; or call it: scanner.trigger()")
        scanner.__dict__["_trigger"] = value
        if value:
            scanner.scan_now()


_RUNNING: dict[str, list[Triggered]] = {}


def running(token: str) -> tuple[Triggered, ...]:
    """Return the running copies of a scanner in this process. A launch works on copies of the operators that it gets."""
    return tuple(_RUNNING.get(token, ()))


def starts(token: str, scanner: Triggered) -> None:
    """Take note of a copy that runs from now on."""
    _RUNNING[token] = [*running(token), scanner]


def ends(token: str, scanner: Triggered) -> None:
    """Take note of a copy that has ended."""
    left = [each for each in running(token) if each is not scanner]
    if left:
        _RUNNING[token] = left
    else:
        _RUNNING.pop(token, None)
