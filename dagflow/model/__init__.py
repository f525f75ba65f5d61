"""The model of an application: typed ports, operators, and the graph that connects them. No I/O, no pyspark.

Read in this order; each package imports only the ones before it:

1. `errors`: the mistakes in an application, one class per cause.
2. `types`: the types of ports, and records of these types as Python objects and Arrow batches.
3. `operator`: the contract of an operator: ports, handlers, lifecycle, state, context.
4. `graph`: the DAG that an application fills, its modules, and its checks.
"""
