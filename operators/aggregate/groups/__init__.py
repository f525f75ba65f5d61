"""Groups of records: a value and a count for each key.

Read in this order: `grouping` (records and batches become groups), `columns` (groups of many rows at once, by pyarrow), `totals`
(keys and values as plain data, which operators keep over windows), `running` (the totals of aggregates, as rows).
"""
