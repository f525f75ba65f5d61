"""The JVM of a session: which Java, with which options, and an archive of its classes.

Read in this order:

1. `java`, `java_stand_in`: the Java to use, and a script in its place where it lacks a module that Spark asks for.
2. `options`: of the JVM that dagflow starts with a local master, chosen by what the plan needs.
3. `class_archive`: the archive in the user's cache folder.
4. `making`: the archive is made once, from a short session of `dagflow.spark.training`.
5. `executor_pod`: the program of an executor on Kubernetes.
"""
