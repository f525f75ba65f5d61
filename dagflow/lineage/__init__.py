"""The origin of rows: past windows rebuilt from their records, and the records that flow through a port of an application.

Read `history` (a past window and its tasks), then `trace` with `row_search` (the source of one row), `contributions` (of a
row behind an exchange: all that it was made of) and `replay` (whole windows).
`sinks` compares tables, databases and logs with the run folder. `peek` runs what leads to a port on a sample.
"""
