"""The command line.

Read in this order:

1. `main`: the process: it runs a command and returns an exit code (`exit_codes`).
2. `group`: the list of commands; a command is imported only when it is invoked.
3. `commands`: one module per command.
4. `app_arguments`, `dataset_arguments`: the arguments that commands on applications, and on datasets, have in common.
5. `prepare`: from a command line to a built application.
6. `progress`, `stopping`: progress and signals while `launch` runs.
7. `report_error`: error reports, and their exit codes.
"""
