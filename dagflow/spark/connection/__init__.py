"""The connection to Spark: its address, a session, and what has happened where there is none.

Read in this order:

1. `address`, `reach`: where Spark runs, and whether something answers there.
2. `answers`: jobs without exchanges. `links`: what differs between classic Spark and Spark Connect.
3. `starting`: the settings and the environment with which a JVM starts. `ahead`: it starts before the application is loaded.
4. `session`: starts or finds a session. `pins`: settings that it has for a while.
   `archives`: the Python that it sends to executors.
5. `failures`, `not_started`: errors of Spark and its JVM in our words.
"""
