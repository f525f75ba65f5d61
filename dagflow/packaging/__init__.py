"""An archive with everything that tasks need of Python's libraries, for executors that have nothing but Python itself.

Read in this order:

1. `code`: the application's own modules, and the libraries that they and its operators import.
2. `libraries`: the distributions behind these names, and what they require in turn.
3. `lock`: libraries from a lock file instead, installed by uv or pip.
4. `launcher`: the script that is the archive's Python.
5. `archive`: the files, their address, and the archive in the cache folder.
6. `package`: all of that together, and the settings with which Spark uses it.
"""
