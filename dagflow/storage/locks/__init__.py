"""One launch at a time on a run folder.

Read `folder` first: the lock, which is one of the operating system on disks. `numbers` is the lock elsewhere, with a lease.
`holder` describes the process that holds a lock.
"""
