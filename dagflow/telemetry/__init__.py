"""A run seen by other systems: Prometheus, OpenTelemetry, OpenLineage. Each is one subscriber of the run's events.

A launch that asks for none of them imports `wanted` and nothing else of this package. None of them stops or slows a run: what
fails while the run works is one warning.

Read in this order:

1. `wanted`: which of them settings and environment ask for.
2. `telemetry`: opening, subscribing and closing them, and their warnings.
3. `figures`: the figures of a run by the names of `metrics`, the one table of all metrics.
4. `prometheus`: the figures on a port, and in a file.
5. `spans`: the launch, its windows and tasks as spans; `opentelemetry`: spans and figures, exported.
6. `lineage`: the inputs and outputs of a launch; `openlineage`: these as run events.
"""
