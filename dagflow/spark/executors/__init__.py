"""The check that executors can run an application: before window 0, and in each Python process that joins later.

Read in this order:

1. `look`: the facts about an executor. Travels as source code, so that an executor without dagflow can answer.
2. `check`: the needs of an application, and the differences, each with its remedy; made in each process before its first task.
3. `probe`: the needs of a plan, and the look from all slots.
"""
