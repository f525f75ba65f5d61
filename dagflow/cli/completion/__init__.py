"""Completion by the shell: the answer to a press of Tab. No command is imported, no application runs, and no error is printed.

Read `answer` (from the words of a command line to completions), then `table` (commands and options, kept in the cache folder),
`keys` (the settings of an application, read from its source), and `scripts` (what a shell runs).
"""
