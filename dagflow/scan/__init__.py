"""Scans: formats in three short methods. A format's reader opens, reads and closes; everything else is done here.

Read `readers` (what the author of a format writes, and how it becomes batches), then `schema` (the columns that a scan returns),
then `format`, `settings` and `output` (batches of a reader to batches of the scan), then `framework` (a scan of blocks), `files`
(of files) and `columns` (of text without headers), then `agreement` (one schema for all files), then `sources` (blocks of any
source). `bad_rows` says what happens to rows that cannot be read.
"""

from dagflow.exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(__name__)
