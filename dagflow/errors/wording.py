"""Parts of messages: names that were probably meant, positions, and options that are ready to paste."""

from __future__ import annotations

from collections.abc import Iterable


def suggest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that is most like `name`, or None. Upper and lower case count as alike.

    >>> suggest("max_reader", ["min_readers", "max_readers"]), suggest("Lines", ["lines"]), suggest("x", ["lines"])
    ('max_readers', 'lines', None)
    """
    import difflib

    by_lower = {candidate.lower(): candidate for candidate in known}
    alike = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=cutoff)
    return by_lower[alike[0]] if alike else None


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """Return ` Did you mean 'x'?`, a sentence with a blank before it; or `otherwise`.

    >>> did_you_mean("maxx", ["max"]), did_you_mean("y", ["max"])
    (" Did you mean 'max'?", '')
    """
    near = suggest(name, known)
    return otherwise if near is None else f" Did you mean {near!r}?"


def known_names(names: Iterable[str]) -> str:
    """Return ` Known: a, b.`, a sentence with a blank before it; of no names an empty string."""
    listed = ", ".join(names)
    return f" Known: {listed}." if listed else ""


def shown(position: object) -> str:
    """Return a position as messages have it: keys in hexadecimal digits.

    >>> shown(120), shown(b"k1")
    ('120', '[6b31]')
    """
    return f"[{position.hex()}]" if isinstance(position, bytes) else str(position)


def definition(operator: str, key: str, value: object) -> str:
    """Return the `-D` that gives a property of an operator, or a part of one, a value.

    >>> definition("reader", "reader_context.max_record_bytes", 256)
    '-D operator.reader.reader_context.max_record_bytes=256'
    >>> definition("all logs", "wait", "true")
    "-D 'operator.all logs.wait=true'"
    """
    import shlex

    return f"-D {shlex.quote(f'operator.{operator}.{key}={value}')}"
