"""JSON that others may have left: of limited depth, so that functions which walk through it need no more stack than there is."""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 200
"""The nesting of lists and objects in a record."""
_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"
_CONTAINERS = (dict, list)


def parse(data: bytes | str) -> Any:
    """Return JSON data. Raises ValueError for anything else, and for what is nested too deeply.

    >>> parse('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    import json  # here, since `import dagflow` comes by

    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    check_depth(value)
    return value


def check_depth(value: Any) -> None:
    """Raise ValueError for JSON data that is nested too deeply for functions that walk through it."""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(MAX_DEPTH):
        inner = (container.values() if type(container) is dict else container for container in level)
        level = [each for values in inner for each in values if type(each) in _CONTAINERS]
        if not level:
            return
    raise ValueError(_TOO_DEEP)
