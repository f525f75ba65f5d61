"""Work that is not even: blocks as assigned, many small tasks with Spark's speculation, and dagflow's rebalancing."""
