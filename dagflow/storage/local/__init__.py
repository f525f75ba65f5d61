"""Files and records on disks that this machine mounts.

Read `files` first, then `store`, which publishes records by links. `cache` is the user's own cache folder, `spill_file` a
temporary file.
"""
