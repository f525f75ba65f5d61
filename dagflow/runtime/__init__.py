"""The window loop, the stage program that a task runs, delivery, run events and the in-process runner."""
