"""Rebalancing within a window: idle tasks steal work from busy ones. The modules, in reading order.

- `items`: the parts of items that a task has: pending, in progress, and its throughput so far;
- `policy`: if an idle task steals, from which task, and how much; why nothing was stolen: pure functions of a few figures;
- `task_work`: the work of one attempt of a task: the interface, and the plain form, of which nothing moves;
- `ownership_log`: the log of each task, which says who owns which part;
- `item_log`: the log of each item of which parts were stolen, which says which part completed it;
- `peers`: an idle task's view of the other tasks of its stage;
- `stealing`: the usual form of work: an idle task steals from its peers through their logs;
- `yielding`: the form for slow stores: tasks stop early, and a further job of the window reads the rest;
- `forms`: the three forms behind one interface, for tasks and for the driver;
- `background`: the thread of a process in which busy tasks answer;
- `failpoints`: the places at which tests kill a task.

The driver's half is `dagflow.runtime.windows.rebalance`.
"""
