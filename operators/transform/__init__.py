"""Operators from record to record, without a key.

Read in this order: `filter`, which is the simplest operator; `map`, `flat_map` and `declared_rows`, the rows that their functions
return; `select`, `unnest`, `sample`; `expect`, whose predicate must hold; `expressions`, with which these work on batches;
`union` and `split`, whose ports follow from their properties (`own_ports`); `spark_operator`, a function of DataFrames;
`content`, the bytes by which records are compared.
"""
