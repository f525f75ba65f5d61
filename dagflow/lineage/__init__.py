"""Past windows, rebuilt from their records.

Read `history` (a past window and its tasks), then `trace` with `row_search` (the source of one row) and `replay` (whole windows).
"""
