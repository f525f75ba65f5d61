"""Plain data as YAML, in block style: what `kubectl` and Spark read, without a library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def as_yaml(*documents: Mapping[str, Any]) -> str:
    r"""Return documents as YAML.

    >>> print(as_yaml({"kind": "Job", "args": ["launch", "yes"], "labels": {"app": "x-1"}, "text": "a\nb\n"}), end="")
    kind: Job
    args:
      - launch
      - "yes"
    labels:
      app: x-1
    text: |
      a
      b
    """
    return "---\n".join("".join(f"{line}\n" for line in _lines(document)) for document in documents)


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _entry(f"{_scalar(str(key))}:", each)
    else:
        for each in value:
            first, *rest = _lines(each) if _is_nested(each) else [_scalar(each)]
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)


def _entry(head: str, value: Any) -> Iterator[str]:
    if _is_nested(value):
        yield head
        yield from (f"  {line}" for line in _lines(value))
    elif isinstance(value, str) and value.endswith("\n") and value.strip() and not value.startswith((" ", "\n")):
        yield f"{head} |"
        yield from (f"  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _is_nested(value: Any) -> bool:
    return bool(value) and isinstance(value, Mapping | Sequence) and not isinstance(value, str)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)  # quoted strings, numbers, true, {} and [] are the same in YAML
