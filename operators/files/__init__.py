"""Operators that find files and cut them into blocks. They open none, apart from files that are appended to.

Read in this order:

1. `splitter_base`: the base of splitters, and the splitter whose input port takes the paths of files.
2. `splitter_input`: the splitter that finds its files itself.
3. `blocks`: the blocks of one file, made on demand.
4. `scanner`, `tree`: the search for files, and its walk over folders.
5. `scan_thread`, `trigger`: scans in the background, and scans on request.
6. `stamps`, `growing`: the facts by which a file is recognised, and the new part of a file that is appended to.
7. `dataset_input`: the input operator that reads what other applications have committed.
8. `file_input`: a splitter with a reader, as one module.
9. `reading`: a splitter with a reader of rows, as `dag.read` adds them.
10. `errors`: the errors of files and datasets.
"""
