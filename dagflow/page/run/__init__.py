"""The data of a run, for its page.

Read in this order:

1. `place`: from a path to the run folder and the datasets.
2. `live`: the events of the newest launch. `committed`: the decided windows.
3. `rows`: a sample of output rows, with where they come from. `inputs`: the work items of tasks.
4. `findings`: what to see first. `resume`: the command after a run that failed.
5. `data`: all of it as one plain object. `report`: a launch as the report that it printed.
"""
