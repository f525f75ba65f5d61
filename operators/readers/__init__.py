"""Operators that read blocks.

Read in this order:

1. `slice_reader`: FSSliceReader, the shortest reader of files.
2. `abstract_block_reader`: AbstractBlockReader, with the methods that a reader of your own overrides.
3. `fs_block_reader`, `block_reader`: readers of files, and BlockReader, which reads lines of text.
4. `abstract_scan_reader`: AbstractScanReader, which reads columns of any source. `scan_reader`, `path_filter`: ScanReader, which
   reads those of files, and its choice of files.
5. `planned_files`: files opened as they were planned.
6. `scaled_reader`: the number of readers.
7. `errors`: the errors of files that changed.

The package `reading` holds the loop of the block readers.
"""
