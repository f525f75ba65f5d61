"""The command line.

Read in this order:

1. `main`: the process: it runs a command and returns an exit code (`exit_codes`). `streams`: its standard output and error.
2. `group`: the list of commands; a command is imported only when it is invoked.
3. `commands`: one module per command.
4. `app_arguments`, `dataset_arguments`: the arguments that commands on applications, and on datasets, have in common; `app_help`:
   the help page of a command with an application.
5. `prepare`: from a command line to a built application.
6. `progress`, `relay`, `stopping`: progress, output of child processes, and signals while `launch` runs.
7. `report_error`: error reports, and their exit codes.
8. `completion`: completion by the shell, which begins in `main` and needs nothing of the rest.
"""
