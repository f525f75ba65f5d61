"""Files and records by URL: object stores, and whatever else fsspec has a driver for.

Read `files` first, then `store`, which publishes records by conditional writes, then `drivers`, which turns the errors of drivers
into ours.
"""
