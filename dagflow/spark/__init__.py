"""The Spark runner. The only room that imports pyspark."""
