"""A continuous run on Spark over a folder that fills in bursts: how many readers its windows have."""
