"""Loading an application, building it and starting a run.

Read in this order:

1. `application`: loads an application from a path or module (`shadowing`: when another module hides it).
2. `build`: populates its DAG and applies its settings.
3. `places`: checks the folders and files that it names. `sinks`: tries its tables and databases.
4. `launch` and `run`: start it, wait for it, stop it; `event_log`: its events as log records.
5. `record`: the settings of a launch as the run folder keeps them, for `trace` and `verify --replay`.
6. `development`: runs an application again whenever its code changes, for `dagflow dev`.
7. `platforms`: what other platforms need to run an application, for `dagflow submit`.
8. `errors`: the errors of these steps.
"""
