"""The runtime: the window loop on the driver, and the tasks of windows.

Read in this order:

1. `runner`: the interface between the window loop and a runner. The runners are in `dagflow.local` and `dagflow.spark`.
2. `windows`: the window loop on the driver.
3. `stage`: one stage in one task: its program, its operators, and the delivery of records between them.
4. `task`: one task, from its work items to its report and its files.
5. `exchange`: the rows between tasks of different levels.
6. `rebalancing`: work stealing between the tasks of a stage.
7. `live`: figures of tasks at work, for the driver.
8. `run_folder`: everything that windows leave on disk.
9. `garbage`: fewer collections of cyclic garbage, in tasks and on the driver.
10. `events` (`event_schema`: as a JSON Schema), `run_view`: the events of a run, folded once for all that show them.
    `run_report`: the results of a launch.
"""
