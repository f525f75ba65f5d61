"""The program of an executor's pod on Kubernetes: `python -m dagflow.spark.jvm.executor_pod executor`.

Images of Spark begin with a script that starts the executor from variables that Spark sets in the pod. An image that only has
dagflow lacks it: this program takes its place, with the Spark of the package pyspark.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION = "SPARK_JAVA_OPT_"
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
"""Arguments of Spark's program, and the variables of the pod that hold their values."""


def command(environ: Mapping[str, str], java: str, spark_home: str) -> list[str]:
    """Return the command line of the executor. Raises KeyError for a variable that is not set."""
    numbers = sorted(int(name.removeprefix(_OPTION)) for name in environ if name.startswith(_OPTION))
    given = (environ.get(name, "") for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "SPARK_CLASSPATH"))
    extra = (environ.get(name, "") for name in ("SPARK_EXTRA_CLASSPATH", "SPARK_DIST_CLASSPATH"))
    memory = environ["SPARK_EXECUTOR_MEMORY"]
    return [
        java,
        *(environ[f"{_OPTION}{number}"] for number in numbers),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join(filter(None, (*given, os.path.join(spark_home, "jars", "*"), *extra))),
        _BACKEND,
        *(part for argument, name in _ARGUMENTS.items() for part in (argument, environ[name])),
    ]


def main() -> None:
    """Become the executor."""
    from dagflow.spark.jvm.java import find_java

    spec = find_spec("pyspark")
    if sys.argv[1:] != ["executor"] or spec is None or spec.origin is None:
        sys.exit("this program starts an executor of Spark in a pod, with the argument `executor`, and needs pyspark")
    spark_home = os.environ.setdefault("SPARK_HOME", os.path.dirname(spec.origin))
    java = find_java().home / "bin" / "java"
    try:
        line = command(os.environ, str(java), spark_home)
    except KeyError as missing:
        sys.exit(f"the variable {missing} is not set: Spark sets it in the pods that it makes")
    os.execv(line[0], line)


if __name__ == "__main__":
    main()
