"""The run folder: the records of windows, its folders, and the files of events."""
