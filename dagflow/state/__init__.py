"""What operators keep over windows, in the run folder: a log of segments, each with what one window has changed."""

from __future__ import annotations

from dagflow.state.log import MapLog, Policy
from dagflow.state.segment import MapId, SegmentRef, erase_segments, segments, unseal_segment

__all__ = ["MapId", "MapLog", "Policy", "SegmentRef", "erase_segments", "segments", "unseal_segment"]
