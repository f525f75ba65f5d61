"""Time windows: those that are a part of the key of `GroupBy`, and those that `Tumbling` fills and fires.

Read in this order: `times` (times as integers), `time_window` (the windows of a row, as columns), `wait` (how long windows are
kept), `spans` (windows of one size, and which are late, due or over), `open_windows` (windows that may still change).
"""
