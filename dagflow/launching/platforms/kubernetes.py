"""The manifest for Kubernetes: a job whose pod is the driver, and what it needs to start executors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.launching.platforms.submission import Submission

_FILES = "/etc/dagflow"
_USER = 185
"""The user `spark` of Spark's own images. Hadoop refuses a user without a name, so an image needs one of this number."""


_EXECUTOR = ["python3", "-m", "dagflow.spark.jvm.executor_pod"]
"""Spark adds the argument `executor`, which only the images of Spark understand by themselves."""


@attrs.frozen(kw_only=True)
class Cluster:
    """The names in a manifest.

    Attributes:
        image: the image of driver and executors: Python, dagflow, Java, the application.
        namespace: where everything is made.
        secrets: names of Secrets whose keys become variables of driver and executors.
        claim: the name of a PersistentVolumeClaim for the run folder and the output; "" for an object store.
        mount: where the claim is mounted.
        executors: the number of executors.
        continuous: the driver runs for ever, and is started again whenever it ends.
        attempts: how often a driver that failed is started again.
    """

    image: str
    namespace: str = "default"
    secrets: tuple[str, ...] = ()
    claim: str = ""
    mount: str = "/data"
    executors: int = 2
    continuous: bool = False
    attempts: int = 6


def manifest(submission: Submission, cluster: Cluster) -> str:
    """Return the manifest as YAML. Raises SecretInSubmission."""
    return "\n---".join(map(as_yaml, documents(submission, cluster))).lstrip() + "\n"


def documents(submission: Submission, cluster: Cluster) -> list[dict[str, Any]]:
    """Return the documents of the manifest, in the order in which they are made. Raises SecretInSubmission."""
    submission.check_secrets()
    name = submission.name
    meta = {"name": name, "namespace": cluster.namespace, "labels": {"app.kubernetes.io/name": name}}
    rules = [
        {
            "apiGroups": [""],
            "resources": ["pods", "configmaps", "services", "persistentvolumeclaims"],
            "verbs": ["create", "get", "list", "watch", "patch", "delete", "deletecollection"],
        }
    ]
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}],
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {
                "executor.yaml": as_yaml(_executor(name, cluster)).lstrip() + "\n",
                "spark-defaults.conf": _defaults(submission, cluster),
            },
        },
        _driver(submission, cluster, meta),
    ]


def _executor(name: str, cluster: Cluster) -> dict[str, Any]:
    """Return the template of executors' pods: Spark fills in the rest."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/component": "executor"}},
        "spec": {**_pod(cluster), "containers": [{"name": "executor", "command": _EXECUTOR, **_container(cluster)}]},
    }


def _defaults(submission: Submission, cluster: Cluster) -> str:
    """Return the settings of Spark that are known before the driver's pod is there."""
    settings = {
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.executor.instances": str(cluster.executors),
        "spark.kubernetes.container.image": cluster.image,
        "spark.kubernetes.namespace": cluster.namespace,
        "spark.kubernetes.executor.podTemplateFile": f"{_FILES}/executor.yaml",
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        "spark.kubernetes.authenticate.serviceAccountName": submission.name,
        **submission.spark,
    }
    return "".join(f"{key} {value}\n" for key, value in settings.items())


def _driver(submission: Submission, cluster: Cluster, meta: dict[str, Any]) -> dict[str, Any]:
    # Spark's executors call the driver at the address of its pod, and go when its pod goes
    of_pod = ["-D", "spark.driver.host=$(POD_IP)", "-D", "spark.kubernetes.driver.pod.name=$(POD_NAME)"]
    arguments = ["launch", *submission.arguments, *of_pod, *(["--shared-paths"] if cluster.claim else [])]
    container = _container(cluster)
    container["env"] = [
        {"name": "SPARK_CONF_DIR", "value": _FILES},
        *({"name": of, "valueFrom": {"fieldRef": {"fieldPath": path}}} for of, path in _FIELDS.items()),
    ]
    container["volumeMounts"] = [*container.get("volumeMounts", []), {"name": "files", "mountPath": _FILES, "readOnly": True}]
    spec = _pod(cluster)
    spec |= {
        "serviceAccountName": submission.name,
        "terminationGracePeriodSeconds": 60,
        "volumes": [*spec.get("volumes", []), {"name": "files", "configMap": {"name": submission.name}}],
        "containers": [
            {
                "name": "driver",
                "image": cluster.image,
                "command": ["dagflow"],
                "args": arguments,
                "resources": {"requests": _requests(submission.spark)},
                **container,
            }
        ],
    }
    labels = {**meta["labels"], "app.kubernetes.io/component": "driver"}
    if cluster.continuous:
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
    # 2: the application or its settings are wrong, so that no further attempt helps
    failures = [
        {"action": "FailJob", "onExitCodes": {"containerName": "driver", "operator": "In", "values": [2]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {
            "backoffLimit": cluster.attempts,
            "podFailurePolicy": {"rules": failures},
            "template": {"metadata": {"labels": labels}, "spec": {**spec, "restartPolicy": "Never"}},
        },
    }


def _requests(spark: Mapping[str, str]) -> dict[str, str]:
    """Return what the driver asks for: the memory of its Java, and as much for Python as `spark.driver.memoryOverhead` says."""
    memory = (spark.get("spark.driver.memory", "1g"), spark.get("spark.driver.memoryOverhead", "1g"))
    return {"cpu": spark.get("spark.driver.cores", "1"), "memory": f"{sum(map(_mebibytes, memory))}Mi"}


def _mebibytes(text: str) -> int:
    """Return a size of Spark's in MiB: a number without a unit counts as that.

    >>> _mebibytes("2g"), _mebibytes("512m"), _mebibytes("1024")
    (2048, 512, 1024)
    """
    number, unit = re.match(r"\s*(\d*)\s*([a-z]?)", text.lower()).groups()  # type: ignore[union-attr]  # it always matches
    return int(number or 0) * _UNITS.get(unit, 1 << 20) >> 20


_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


_FIELDS = {"POD_IP": "status.podIP", "POD_NAME": "metadata.name"}


def _pod(cluster: Cluster) -> dict[str, Any]:
    spec: dict[str, Any] = {"securityContext": {"runAsNonRoot": True, "runAsUser": _USER, "fsGroup": _USER}}
    if cluster.claim:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": cluster.claim}}]
    return spec


def _container(cluster: Cluster) -> dict[str, Any]:
    parts: dict[str, Any] = {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    if cluster.secrets:
        parts["envFrom"] = [{"secretRef": {"name": name}} for name in cluster.secrets]
    if cluster.claim:
        parts["volumeMounts"] = [{"name": "data", "mountPath": cluster.mount}]
    return parts


def as_yaml(value: Any, indent: str = "\n") -> str:
    r"""Return plain data as YAML in block style, which is to be read before it is applied.

    >>> print(as_yaml({"kind": "Job", "args": ["launch", "yes"], "labels": {"app": "x-1"}, "text": "a\nb\n"}).lstrip())
    kind: Job
    args:
      - launch
      - "yes"
    labels:
      app: x-1
    text: |
      a
      b
    """
    if isinstance(value, dict) and value:
        return "".join(f"{indent}{key}:{as_yaml(each, indent + '  ')}" for key, each in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{indent}- {as_yaml(each, indent + '  ').lstrip()}" for each in value)
    if isinstance(value, str) and _LINES.fullmatch(value):
        return f" |{indent}{indent.join(value.splitlines())}"
    is_plain = isinstance(value, str) and _WORD.fullmatch(value)
    if is_plain:
        return f" {value}"
    text = json.dumps(value, ensure_ascii=False)  # quoted strings, numbers, true, {} and [] are the same in YAML
    return f" {_BREAKS.sub(lambda found: json.dumps(found[0])[1:-1], text)}"


_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")  # which YAML does not have as they are
_LINES = re.compile(r"[!-~][ -~]*\n([ -~]*[!-~]\n)*")
_WORD = re.compile(r"(?!(true|false|null|yes|no|on|off|y|n)$)[a-z/][a-z0-9_./-]*", re.IGNORECASE | re.ASCII)
