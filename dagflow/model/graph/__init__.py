"""The graph that an application fills, and its checks.

Read in this order:

1. `dag`: operators and streams; `module`: a named part of a DAG.
2. `expand`: the rewrite that puts the operators of modules in their place.
3. `checks`: the checks of a whole DAG, with their table of contents; `class_checks`: those of an operator's class.
4. Used by the checks: `infer` (the types of all ports), `changes` (streams whose rows may be taken back), `partitioning` (keys
   and partitioners), `stream_columns` (the columns of rows, and which identify one), `topology`.
"""
