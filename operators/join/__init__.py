"""Operators that bring the records of two streams together.

Read in this order:

1. `hash_join`: the operator. `join`: its form for rows.
2. Over all input: `sides` (what a window brings), `kept_rows` (what is kept, by key), `change` (what follows for the output),
   `at_once` (the same where nothing is kept).
3. Within a window: `right_side` (what is kept in memory), `buffer` (the side that waits, in a file where it is large).
4. `row_join`: the join of batches, with `lookup` (partners by key) and `sizes` (batches that fit).
5. `rules`: the properties that do not go together.
"""
