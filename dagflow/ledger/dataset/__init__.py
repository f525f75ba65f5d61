"""A dataset: the folder whose files a ledger names.

Read `find` (the folder of a dataset, from any path in it), then `files` (the committed files, and `read_dataset`), `tables`
(files of each format as Arrow tables), and `first_rows` (the rows that `dagflow show` prints).
"""
