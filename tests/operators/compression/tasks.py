"""Runs a block reader by itself: its messages, and what it counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dagflow import Operator
from dagflow.testing import OperatorTask


def run(reader: Operator, blocks: Sequence[Any], *, batches: bool = False) -> tuple[list[Any], dict[str, int]]:
    with OperatorTask(reader, in_batches=batches) as task:
        task.give("blocks_metadata_input", list(blocks))
    return task.emitted["messages"], {name: count for name, count in task.counters.items() if count}
