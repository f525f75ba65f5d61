"""Files and records on disks that this machine mounts.

Read `files` first, then `store`, which publishes records by links.
"""
