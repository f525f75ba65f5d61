"""Tables of files with a log of transactions, and inputs that read them as they grow.

Read in this order:

1. `history`: the versions of a table, and the files that each of them added, whatever the format.
2. `table_input`: the base of the inputs.
3. `delta_input`, `delta_history`, `delta_schema`: Delta tables.
4. `iceberg_input`, `iceberg_history`: Iceberg tables.
5. `errors`.
"""
