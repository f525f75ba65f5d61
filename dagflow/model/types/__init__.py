"""The types of ports, and the records of these types.

Read in this order:

1. `expressions`: the names and the run-time meaning of type expressions; `comparison`: which types fit which, and type variables.
2. `records`: the values that the library's operators exchange; `typecheck`: a record against the type of its port.
3. `columns` and `forms`: records as Arrow batches, and back; `declared` and `plain_data`: records as JSON.
4. `equality` and `keys`: the key of a record, and the hash that sends equal keys to one partition; `keyed_rows`: rows by key;
   `table_keys`: many keys with their codes; `spilled_rows`: rows by key in a temporary file; `net_changes`: what rows that are
   added and taken back come to.
5. `snapshots`: values that are looked after, to see whether they are changed in place.
"""
