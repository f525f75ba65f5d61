"""The states that operators keep over windows: saved in the run folder, and restored.

Read in this order: `values` (plain data for a declared state), `segment` and `log` (sorted rows, to which each window adds its
changes), `page_cache` (segments of object stores on a local disk), `maps` (the maps and tables that are such rows),
`references` and `task_states` (operators in tasks: the decision names their states), `driver_state` (operators on the driver:
the plan names theirs). The declarations are in `state`, `map_state` and `table_state` of `dagflow.model.operator`.
"""

from __future__ import annotations

from dagflow.state.log import Policy, check_segments
from dagflow.state.maps import MapLog
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
    "check_segments",
    "erase_segments",
    "segments",
    "unseal_segment",
]
