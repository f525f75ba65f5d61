"""Checks of this machine and its environment, for `dagflow doctor`.

Read `check` (the result of a check), then `machine` (disk, memory, network), `python` (packages, and modules that hide others),
`spark` (Java, Spark, the Python of its tasks), `executors` (those of a cluster), and `all` (the list of checks).
"""
