"""Windows as DataFrames.

Read in this order:

1. `levels`: the stages of a window with exchanges, one DataFrame over the other.
2. `transforms`: DataFrame operators within a level.
3. `local_transforms`: the same for the local runner and for tests.
"""
