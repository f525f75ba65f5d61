"""Partitioners and stats listeners: how many partitions an operator has, and why.

Read `partitioner` (the protocols) and `partition` (a partition, and the keys that it owns), then `stats` (the figures that
listeners get), then `policy` (readers for a load) and `backlog` (the partitioner of block readers). `named` reads a partitioner
from a string.
"""

from dagflow.model.types.equality import compared
from dagflow.model.types.keys import key_hash
from dagflow.scaling.backlog import DEFAULT_INTERVAL_MILLIS, BacklogPartitioner
from dagflow.scaling.named import EXPECTED, partitioner_named
from dagflow.scaling.partition import Partition, PartitionKeys, assign_partition_keys, key_owners, resized
from dagflow.scaling.partitioner import (
    Bounds,
    Partitioner,
    PartitioningContext,
    StatelessPartitioner,
    StatsListener,
    bounds,
)
from dagflow.scaling.policy import POLICIES, Load, PowerOfTwo, ScalingPolicy, Steady, policy_named
from dagflow.scaling.stats import UNASSIGNED, Backlog, KnowsBacklog, OperatorStats, Response

__all__ = [
    "DEFAULT_INTERVAL_MILLIS",
    "EXPECTED",
    "POLICIES",
    "UNASSIGNED",
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
    "key_hash",
    "key_owners",
    "partitioner_named",
    "policy_named",
    "resized",
]
