"""Expressions over the columns of rows: `col("price") * (1 - col("discount"))`.

Read `columns` (expressions as they are written; it loads no pyarrow), `places` (where in the user's code), `types` (the type
that two values have together), `rules` (each operation as an expression of `pyarrow.compute`), then `programs` (whole
expressions, made for the columns of a batch) and `repeats` (parts that several of them share).
"""
