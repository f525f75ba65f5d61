"""Rebalancing within a window: idle tasks take over work of others, through one log of claims per task.

- `parts`: parts of work items, and whether they make up the whole;
- `entries`: what stands in a log, and what follows from it;
- `claims`: one attempt of a task at the logs of its stage;
- `work`: a task's queue, and the thread that answers whoever asks for a part of it;
- `steps`: the names of the places where a task may be killed, for tests.
"""
