"""The Spark runner. The only package that imports pyspark.

Read in this order:

1. `connection`: the address of Spark, and a session there. `jvm`: the Java that runs it, and how it starts fast.
2. `runner`: runs a window as one Spark action; `threads`: in a thread of its own.
3. `task`, `daemon`: the function that Spark calls in its Python workers, and the process that forks them.
4. `dataframes`: windows with exchanges or DataFrame operators.
5. `data_source`: datasets as DataFrames, for users' own sessions.
6. `executors`: the check that executors can run an application.
7. `training`: a short session whose classes go into the archive of `jvm`.

`errors` has the errors of all.
"""
