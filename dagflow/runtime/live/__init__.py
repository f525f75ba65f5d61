"""Figures of tasks at work: a side channel from tasks to the driver. Nothing that counts depends on it.

`record` is what a task leaves in the run folder, `task` writes it, and `watch` reads it on the driver: once a second it sends the
sums as an event, with what is left to do, an estimate of the time that takes, and the reasons why something waits (`reasons`).
Run folders in object stores have no such records, since each would be a request. If the tasks run on the driver's machine, they
leave them in a temporary folder instead.
"""
