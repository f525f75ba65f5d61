"""A task: the stage program that it runs, from the compiled plan to the report of an attempt.

Read `execute` (one attempt of a task), then `flow` (its operators, connected) and `compile` (a plan as programs that pickle).
Beside them are the files of an attempt (`attempt_files`; `recording_files` for tasks that stage nothing), the marker by which a
record that kills its worker is found (`crash_marker`), and the user's classes that travel by value (`user_code`).
"""
