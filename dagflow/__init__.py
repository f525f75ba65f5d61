"""dagflow: assemble Python operators with typed ports into a DAG that runs, window by window, on Spark.

The names that applications and operators import are in `__init__.pyi`. docs/explanation/architecture.md describes the packages;
to read the code, begin with `dagflow.model`.
"""

from dagflow.interrupts import end_if_command

end_if_command()  # before anything else is imported, which takes a while

from dagflow.exports import lazy_exports  # noqa: E402
from dagflow.launching.shadowing import explain_shadows  # noqa: E402

__all__, __getattr__, __dir__ = lazy_exports(__name__)

explain_shadows()
