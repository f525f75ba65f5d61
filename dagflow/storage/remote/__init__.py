"""Files and records by URL: object stores, and whatever else fsspec has a driver for.

Read `files` first, which reads blocks by `ranges`, then `store`, which publishes records by conditional writes. `s3` has requests
that its driver does not make as they are needed, `azure` waits for copies. `drivers` turns the errors of drivers into ours.
"""
