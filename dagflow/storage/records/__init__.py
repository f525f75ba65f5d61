"""Records that are published once: sealed by a hash, bound to the record they build on, and checked whenever they are read.

Read `sealed` first, then `bounded`: what is read from a stranger's folder. `errors` holds the ways in which a record is refused.
"""
