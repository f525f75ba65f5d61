"""Readers of scans: from the three methods that the author of a format writes, to batches.

Read `machine` (the scan operator: it opens, drains and closes readers, and knows no schema), then `loader` (rows and columns in,
batches out), `managed` (the protocol of a format's reader) and `lifecycle` (a reader that cannot be called out of order).
"""
