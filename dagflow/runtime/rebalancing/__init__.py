"""Rebalancing within a window: idle tasks take over work of others, through one log of claims per task.

- `parts`: parts of work items, and whether they make up the whole;
- `entries`: what stands in a log, and what follows from it;
- `claims`: one attempt of a task at the logs of its stage;
- `others`: what an idle task sees of the others;
- `finished`: which part of an item was read last;
- `giving`: what a task has before it, and which part of it is given away;
- `at_work`: a task's queue, what it has at hand and what it has read;
- `work`: asking and answering;
- `yielding`, `further`: the fallback for slow stores: tasks stop early, and a further job of the window reads the rest;
- `watching`: how far the readers of a window are, for progress;
- `ending`: whether the work was even, and if not, why nothing was taken over;
- `serving`: the thread in which a process answers;
- `driver`: which tasks share their work, and whether what they report is all;
- `steps`: the names of the places where a task may be killed, for tests.
"""
