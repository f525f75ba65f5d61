"""The stage program that a task runs, from the compiled plan to the report of an attempt."""
