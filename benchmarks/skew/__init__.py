"""Work that is not even: blocks as they were dealt, many small tasks with Spark's speculation, and dagflow's rebalancing."""
