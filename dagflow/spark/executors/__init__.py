"""The check that executors can run an application: before window 0, and in each Python process that joins later.

Read in this order:

1. `needs`, `application`: what an application needs of an executor: Python, packages, modules, folders.
2. `look`: what an executor has. Travels as source code, so that an executor without dagflow can answer.
3. `problems`: the differences, each with its remedy, and the table of them.
4. `mark`, `folders`: a file that a task has to find in the run folder; folders to read and to write.
5. `probe`: looks from all slots. `guard`: the same within a task, once in a process.
"""
