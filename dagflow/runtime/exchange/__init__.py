"""What crosses from one level of a window to the next: rows of Arrow batches, sent by key, dealt, to one or along.

`rows` says what a row is, `sender` makes them, `arrival` hands them to the operators of the next level, `pump` lets a task hand
rows on while it works, `spool` keeps them for the in-process runner.
"""
