"""dagflow: assemble Python operators with typed ports into a DAG that runs, window by window, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagflow.model.context import Clock, OperatorContext
from dagflow.model.dag import DAG
from dagflow.model.dataframes import DataFrameOperator
from dagflow.model.kept import State, WindowState
from dagflow.model.map_state import MapState
from dagflow.model.module import Module
from dagflow.model.operator import ErrorRecord, InputOperator, Operator
from dagflow.model.ports import InputPort, OutputPort, ProxyInputPort, ProxyOutputPort
from dagflow.model.records import BlockIds, FileBlockMetadata, FileInfo, FileMetadata, ReaderRecord, Window
from dagflow.runtime.shadowing import explain_shadows

if TYPE_CHECKING:
    from dagflow.render.views import validate, view
    from dagflow.runtime.launch import launch

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
    "State",
    "Window",
    "WindowState",
    "launch",
    "validate",
    "view",
]

explain_shadows()

_LATER = {"launch": "dagflow.runtime.launch", "validate": "dagflow.render.views", "view": "dagflow.render.views"}


def __getattr__(name: str) -> object:
    """Loads what is heavy when it is first used."""
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'dagflow' has no attribute {name!r}")
