"""Windows of event time, which `Tumbling` fills and fires.

Read in this order: `times` (times as integers), `wait` (how long windows are kept), `spans` (windows of one size, and which are
late, due or over), `open_windows` (windows that may still change).
"""
