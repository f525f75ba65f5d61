"""The needs of platforms to run an application: a command line, or a Kubernetes manifest. Pure functions to text.

Read in this order: `submission` (what is to be run, and where), `spark_submit`, and `kubernetes`.
"""
