"""The run folder: what a run writes to its run folder and its output folders, apart from data and state.

Read in this order:

1. `layout`: the table of everything that a run writes, with its name, its writer, and when it is removed.
2. `reports`: the report of a task, and the figures, files and states in it.
3. `files`: the files that tasks stage, their final names, and the check that they are what was written.
4. `launch_record`: the settings of a launch, kept so that its windows can run again.
5. `window_log`: the records of windows: a plan, then a decision, which is the commit, then the mark that all of it has followed.
6. `progress`: the windows of a log that are decided, and those that still have to run.
7. `folders`: the outputs of a run and its run folder, their owners, and starting over.
8. `events_file`: run events on disk, one line of JSON each.
9. `verify`: the check of a whole run folder, for `dagflow verify`.
10. `errors`: the errors of these folders.
"""
