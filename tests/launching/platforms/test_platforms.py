"""Submissions: what platforms are told to run. Nothing is submitted here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.errors import ModeUnsupported, SecretInSubmission
from dagflow.launching.platforms.kubernetes import Cluster, as_yaml, documents, manifest
from dagflow.launching.platforms.spark_submit import words
from dagflow.launching.platforms.submission import Submission
from dagflow.packaging.package import Package

ORDERS = Submission(
    name="orders",
    arguments=("orders", "-D", "input=s3://logs", "-D", "note=a: #b"),
    spark={"spark.executor.memory": "4g"},
    master="yarn",
)
MAIN = Path("main.py")
PLAIN, CLAIMED = (
    Cluster(image="registry.example/orders:1"),
    Cluster(image="o:1", secrets=("keys",), claim="runs", continuous=True),
)


@pytest.mark.parametrize("cluster", [PLAIN, CLAIMED])
def test_kubernetes_accepts_the_manifest_and_the_template_in_it(cluster: Cluster) -> None:
    yaml, validator = pytest.importorskip("yaml"), pytest.importorskip("kubernetes_validate")
    found: list[dict[str, Any]] = list(yaml.safe_load_all(manifest(ORDERS, cluster)))
    assert found == documents(ORDERS, cluster), "YAML says the same as the data"
    template = yaml.safe_load(found[3]["data"]["executor.yaml"])
    for document in (*found, template):
        validator.validate(document, "1.31", strict=True)


def test_a_driver_that_cannot_succeed_is_not_started_again() -> None:
    job = documents(ORDERS, PLAIN)[-1]
    assert job["kind"] == "Job"
    assert job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [2]
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert documents(ORDERS, CLAIMED)[-1]["spec"]["strategy"] == {"type": "Recreate"}


def test_the_driver_asks_for_what_it_needs() -> None:
    def requests(**spark: str) -> Any:
        submission = attrs.evolve(ORDERS, spark={key.replace("_", "."): value for key, value in spark.items()})
        return documents(submission, PLAIN)[-1]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]

    assert requests() == {"cpu": "1", "memory": "2048Mi"}
    given = {"spark_driver_memory": "4g", "spark_driver_memoryOverhead": "512", "spark_driver_cores": "2"}
    assert requests(**given) == {"cpu": "2", "memory": "4608Mi"}


def test_secrets_are_named_and_never_written() -> None:
    assert "secretRef:\n            name: keys\n" in manifest(ORDERS, CLAIMED).replace("                ", "            ")
    for wrong in (
        attrs.evolve(ORDERS, spark={"spark.hadoop.fs.s3a.secret.key": "abc"}),
        attrs.evolve(ORDERS, arguments=("orders", "-D", "operator.sink.password=abc")),
        attrs.evolve(ORDERS, arguments=("orders", "-D", "input=sftp://ada:abc@host/logs")),
    ):
        with pytest.raises(SecretInSubmission) as raised:
            manifest(wrong, PLAIN)
        assert "abc" not in str(raised.value)
        with pytest.raises(SecretInSubmission):
            words(wrong, MAIN, "client")


def test_an_environment_travels_to_driver_and_executors(tmp_path: Path) -> None:
    archive, code = tmp_path / "o-1.tar.gz", tmp_path / "o-1.zip"
    package = Package("orders", archive, None, code, "app:populate_dag", "3.11", (), is_new=True, seconds=0.0)
    line = words(ORDERS, MAIN, "cluster", package)
    assert f"spark.archives={archive}#environment" in line
    assert "spark.yarn.appMasterEnv.PYSPARK_PYTHON=./environment/bin/python" in line
    assert line[-7:] == ["main.py", "launch", "app:populate_dag", *ORDERS.arguments[1:]]
    assert line[line.index("--py-files") + 1] == str(code)
    line = words(ORDERS, MAIN, "client", package)
    assert "spark.pyspark.python=./environment/bin/python" in line
    assert f"spark.pyspark.driver.python={sys.executable}" in line
    assert line[-7:] == ["main.py", "launch", *ORDERS.arguments]
    assert "--py-files" not in line


def test_standalone_clusters_run_no_python_drivers() -> None:
    with pytest.raises(ModeUnsupported, match="--deploy-mode client"):
        words(attrs.evolve(ORDERS, master="spark://boss:7077"), MAIN, "cluster")


def test_words_that_yaml_would_read_as_something_else_are_quoted() -> None:
    yaml = pytest.importorskip("yaml")
    data = {"a": ["yes", "1", "", "a: b", "-D", "ä", "x\ny\n", {"b": [], "c": {}}, 3, True, None], "d": "one\n\ntwo\n"}
    data["e"] = ["\n", " x\n", "x\n\n", "x \n", "a\n  b: |\n", "yes\n", "No", "nothing", "\u2028x\n", "x\x85y\n"]
    assert yaml.safe_load(as_yaml(data)) == data
