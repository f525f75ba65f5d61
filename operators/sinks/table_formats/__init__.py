"""Tables of files with a log of transactions: the part that sinks of Delta and Iceberg tables share.

Read in this order: `staged_files` (Parquet files that tasks write where no reader looks), `rows` (the same, as the decision of a
window describes them), `types` (Arrow types as tables store them), `columns` (batches in the columns of a table), `published`
(the notes of a sink on its table, by which it notices that it was dropped or rolled back), `opened` (a table, whatever its
format), `writer` (the base of the sinks), `errors`.
"""
