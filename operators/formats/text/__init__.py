"""Parts of the formats of text.

Read in this order:

1. `lines`: the base of formats of lines, which reads blocks of files that may be compressed.
2. `line_numbers`: the numbers of lines, for errors and bad rows.
3. `json_rows`: lines of JSON that the fast parser refuses, one by one.
4. `log_patterns`, `times`: ready-made patterns of logs, and the times in them.
"""
