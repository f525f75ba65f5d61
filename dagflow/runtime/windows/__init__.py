"""The window loop on the driver: plan, start tasks, decide, roll forward.

Read in this order:

1. `loop`: the loop over the windows of a launch. It calls all other modules, directly or through `jobs`.
2. `plan_window`: the plan of a window. The driver's operators emit its work items.
3. `readers`: the number of readers of each stage, and the assignment of work items to them.
4. `event_time`: the event time that operators in tasks are given; `emission`: which of them emit what they keep.
5. `jobs`: the tasks of a window as one job, and its events.
6. `retry`: the retry policy for transient errors of the driver's steps.
7. `commit`: from the reports of tasks to a decision, and everything that follows from it.
8. `directories`, `datasets`, `sinks`: three parts of that. Files get their final names, ledgers entries, and tables rows.
9. `marks`: the check that these and the run folder know the same newest window.
10. `rejection`: a decided window that a sink refuses for ever, and leaving it out.
11. `compatibility`: the check that an application can resume from a plan of an earlier launch.
12. `rebalance`: the driver's half of `dagflow.runtime.rebalancing`.
13. `errors`: the errors of the loop.
"""
