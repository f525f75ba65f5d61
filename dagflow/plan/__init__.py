"""How it will run: pure functions from a checked DAG to stages and levels."""
