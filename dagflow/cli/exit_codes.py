"""The exit codes of all commands."""

DONE, FAILED, WRONG, ENVIRONMENT, INTERRUPTED = 0, 1, 2, 3, 130
