"""The modules of logs pass the properties of their parts on."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.model.graph.expand import expand
from operators import KafkaInput, KafkaScanInput, NatsInput, NatsScanInput
from operators.logs.log_input import LogInputProperties

PLANNED = {"start": "latest", "wait": True, "event_time": "value.at", "out_of_orderness": 2.0, "idle_timeout": 7.0}
READ = {"min_readers": 2, "max_readers": 3}
KAFKA = {"bootstrap_servers": "kafka:9092", "config": {"client.id": "shop"}, "timeout": 3.0}
NATS = {"servers": "nats://localhost", "subjects": ("a.*",), "credentials": "a.creds", "domain": "leaf", "timeout": 3.0}
MESSAGES = {"convert_to_record": json.loads, "on_bad_message": "route"}
COLUMNS = {"value_format": json.loads, "columns": ("page",), "message_columns": ("offset",), "on_bad_row": "drop"}


@pytest.mark.parametrize(
    ("kind", "log", "own"),
    [
        (KafkaInput, KAFKA, MESSAGES),
        (NatsInput, NATS, MESSAGES),
        (KafkaScanInput, KAFKA, COLUMNS),
        (NatsScanInput, NATS, COLUMNS),
    ],
)
def test_parts_have_the_properties_of_the_module(kind: Any, log: dict[str, Any], own: dict[str, Any]) -> None:
    of_splitter = {**log, **PLANNED, "topics": ("clicks",), "on_lost": "skip"}
    assert {field.name for field in attrs.fields(LogInputProperties)} <= {*of_splitter, *READ}  # those that are new, too
    dag = DAG()
    dag.add_module("clicks", kind(**of_splitter, **READ, **own))
    nodes = expand(dag).operators
    splitter: Any = nodes["clicks.splitter"].operator
    reader: Any = nodes["clicks.reader"].operator
    assert {name: getattr(splitter, name) for name in of_splitter} == of_splitter
    assert splitter.value_format is json.loads
    read = {**log, **READ, "on_lost": "skip"}
    assert {name: getattr(reader, name) for name in read} == read
    if own is MESSAGES:
        assert (reader.converter, reader.on_error) == (json.loads, "route")
    else:
        assert {name: getattr(reader, name) for name in own} == own
