"""The states that operators keep over windows: saved in the run folder, and restored.

Read in this order: `values` (plain data for a declared state), `segment` and `log` (maps, to which each window adds its
changes), `references` and `task_states` (operators in tasks: the decision names their states), `driver_state` (operators on the
driver: the plan names theirs). The declarations are in `dagflow.model.operator.state` and `dagflow.model.operator.map_state`.
"""

from __future__ import annotations

from dagflow.state.log import MapLog, Policy
from dagflow.state.references import PartitionStates, StartStates, StateAssignment, StateRef
from dagflow.state.segment import MapId, SegmentRef, erase_segments, segments, unseal_segment

__all__ = [
    "MapId",
    "MapLog",
    "PartitionStates",
    "Policy",
    "SegmentRef",
    "StartStates",
    "StateAssignment",
    "StateRef",
    "erase_segments",
    "segments",
    "unseal_segment",
]
