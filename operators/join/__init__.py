"""Operators that bring the records of two streams together.

Read in this order:

1. `hash_join`: the operator.
2. `right_side`: the side that is kept in memory. `buffer`: the side that waits, in a file where it is large.
3. `row_join`: the join of batches, with `lookup` (partners by key) and `sizes` (batches that fit).
4. `rules`: the properties that do not go together.
"""
