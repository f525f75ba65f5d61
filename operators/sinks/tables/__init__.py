"""Parts of the sinks that write tables of other systems.

Read in this order: `modes` (what a window does to the rows that are there), `acceptance` (rows that a table would refuse once
their window is decided), `changes` (what rows that come and are taken back add up to), `changelog` (these changes as
rows), `earlier` (the rows of earlier runs, which
a launch would double), `errors`.
"""
