"""Steps of sharing that come by chance only: what makes them come."""

from __future__ import annotations

from typing import Any


def refused(*_: Any) -> str:
    """In the place of `steal_from`: gives nothing."""
    return "not worth it"


def provoked(step: str) -> dict[str, Any]:
    """The settings of `dagflow.runtime.rebalancing.stealing` that make sure that a step comes.

    >>> provoked("before withdraw"), provoked("after grant")
    ({'ANSWER_TIMEOUT': 0.0}, {})
    """
    if step.endswith("withdraw"):
        return {"ANSWER_TIMEOUT": 0.0}  # no task answers so fast
    return {"steal_from": refused} if step == "after refuse" else {}
