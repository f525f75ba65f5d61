"""The local runner: one machine, no JVM; in this process, or in processes of its own.

Read in this order:

1. `runner`: the runner for one slot. Every task runs in the calling thread.
2. `processes`: the runner for several slots. Each task runs in one of its worker processes.
3. `schedule`: the order of the tasks of a job, and the retry rules.
4. `pool`: the worker processes, as the launch sees them. `boot` starts the `fork_server`
   that they are forks of, `worker` is what runs in them, and `channel`
   is how they talk.
5. `spool`, `row_files`: the rows of exchanges, in this process and between processes.
6. `cores`: the number of cores that this process may use.
"""
