"""The exit codes of all commands."""

DONE, FAILED, WRONG, ENVIRONMENT, INTERRUPTED = 0, 1, 2, 3, 130
UNREAD = 141
"""The reader of the output is gone: 128 and the number of SIGPIPE, as shells show it for other programs."""
