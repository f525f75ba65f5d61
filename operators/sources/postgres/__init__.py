"""A table of PostgreSQL, read by ranges of a key.

Read in this order:

1. `keys`: types of keys, and their positions, which are integers.
2. `blocks`: ranges of keys as work items, cut out of a table.
3. `source_table`: the questions to a server about a table, its newest key and its running transactions.
4. `ranges`: PostgresRanges, the input operator on the driver.
5. `columns`: the columns that all tasks of a window agree on.
6. `rows`: rows of the server as batches of Arrow.
7. `range_reading`: the connection of a task, and what it reads over it.
8. `reader`: PostgresReader, which reads ranges in tasks.
"""
