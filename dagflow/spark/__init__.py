"""The Spark runner. The only package that imports pyspark."""
