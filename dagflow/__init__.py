"""dagflow: assemble Python operators with typed ports into a DAG that runs, window by window, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagflow.launching.shadowing import explain_shadows
from dagflow.model.context import Clock, OperatorContext
from dagflow.model.dag import DAG
from dagflow.model.dataframes import DataFrameOperator
from dagflow.model.map_state import MapState
from dagflow.model.module import Module
from dagflow.model.operator import ErrorRecord, InputOperator, Operator
from dagflow.model.ports import InputPort, OutputPort, ProxyInputPort, ProxyOutputPort
from dagflow.model.records import BlockIds, FileBlockMetadata, FileInfo, FileMetadata, ReaderRecord, Window
from dagflow.model.renamed import RenamedProperty
from dagflow.model.sink import Sink, StagedWindow
from dagflow.model.state import State, WindowState

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
