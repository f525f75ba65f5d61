"""Partitioners and stats listeners: how many partitions an operator has, and why."""

from dagflow.model.types.equality import compared
from dagflow.model.types.keys import key_hash
from dagflow.scaling.backlog import DEFAULT_INTERVAL_MILLIS, BacklogPartitioner
from dagflow.scaling.dealt import dealt_keys
from dagflow.scaling.named import EXPECTED, partitioner_named
from dagflow.scaling.partition import Partition, PartitionKeys, assign_partition_keys, resized
from dagflow.scaling.partitioner import (
    Bounds,
    Partitioner,
    PartitioningContext,
    StatelessPartitioner,
    StatsListener,
    bounds,
)
from dagflow.scaling.policy import POLICIES, Load, PowerOfTwo, ScalingPolicy, Steady, policy_named
from dagflow.scaling.stats import NOT_DEALT, Backlog, KnowsBacklog, OperatorStats, Response

__all__ = [
    "DEFAULT_INTERVAL_MILLIS",
    "EXPECTED",
    "NOT_DEALT",
    "POLICIES",
    "Backlog",
    "BacklogPartitioner",
    "Bounds",
    "KnowsBacklog",
    "Load",
    "OperatorStats",
    "Partition",
    "PartitionKeys",
    "Partitioner",
    "PartitioningContext",
    "PowerOfTwo",
    "Response",
    "ScalingPolicy",
    "StatelessPartitioner",
    "StatsListener",
    "Steady",
    "assign_partition_keys",
    "bounds",
    "compared",
    "dealt_keys",
    "key_hash",
    "partitioner_named",
    "policy_named",
    "resized",
]
