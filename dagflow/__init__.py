"""dagflow: assemble Python operators with typed ports into a DAG that runs, window by window, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagflow.launching.shadowing import explain_shadows
from dagflow.model.graph.dag import DAG
from dagflow.model.graph.module import Module
from dagflow.model.operator.base import ErrorRecord, InputOperator, Operator
from dagflow.model.operator.context import Clock, OperatorContext
from dagflow.model.operator.dataframes import DataFrameOperator
from dagflow.model.operator.map_state import MapState
from dagflow.model.operator.ports import InputPort, OutputPort, ProxyInputPort, ProxyOutputPort
from dagflow.model.operator.renamed_properties import RenamedProperty
from dagflow.model.operator.sink import Sink, StagedWindow
from dagflow.model.operator.state import State, WindowState
from dagflow.model.types.records import BlockIds, FileBlockMetadata, FileInfo, FileMetadata, ReaderRecord, Window

if TYPE_CHECKING:
    from dagflow.launching.launch import launch
    from dagflow.render.views import validate, view

__all__ = [
    "DAG",
    "BlockIds",
    "Clock",
    "DataFrameOperator",
    "ErrorRecord",
    "FileBlockMetadata",
    "FileInfo",
    "FileMetadata",
    "InputOperator",
    "InputPort",
    "MapState",
    "Module",
    "Operator",
    "OperatorContext",
    "OutputPort",
    "ProxyInputPort",
    "ProxyOutputPort",
    "ReaderRecord",
    "RenamedProperty",
    "Sink",
    "StagedWindow",
    "State",
    "Window",
    "WindowState",
    "launch",
    "validate",
    "view",
]

explain_shadows()

_LATER = {"launch": "dagflow.launching.launch", "validate": "dagflow.render.views", "view": "dagflow.render.views"}


def __getattr__(name: str) -> object:
    """Loads what is heavy when it is first used."""
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'dagflow' has no attribute {name!r}")
