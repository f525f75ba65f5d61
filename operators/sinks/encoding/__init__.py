"""Records and batches as text.

Read in this order: `text` (lines of text and bytes, of records or of a column), `plain_text` (the values of a column, as CSV and
JSON lines share them), `csv_rows`, `json_rows`.
"""
