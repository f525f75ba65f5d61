"""The operator library: one operator a file, loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from operators.aggregate.aggregate import KeyValue
    from operators.aggregate.average import Average
    from operators.aggregate.count import Count
    from operators.aggregate.deduplicate import Deduplicate
    from operators.aggregate.max import Max
    from operators.aggregate.min import Min
    from operators.aggregate.sum import Sum
    from operators.aggregate.top_n import TopN
    from operators.aggregate.tumbling import Tumbling, WindowValue
    from operators.contexts.entity import Entity, ReaderContext
    from operators.contexts.fixed_bytes import FixedBytesReaderContext
    from operators.contexts.fixed_records import FixedRecordsReaderContext
    from operators.contexts.line import LineReaderContext
    from operators.contexts.read_ahead_line import ReadAheadLineReaderContext
    from operators.files.dataset_input import DatasetInput
    from operators.files.file_input import FileInput
    from operators.files.scanner import TimeBasedDirectoryScanner
    from operators.files.splitter_base import AbstractFileSplitter, FileSplitterBase
    from operators.files.splitter_input import FileSplitterInput
    from operators.formats.avro import AvroFormat
    from operators.formats.csv import CsvFormat
    from operators.formats.fixed_width import FixedWidthFormat
    from operators.formats.json_lines import JsonLinesFormat
    from operators.formats.parquet import ParquetFormat
    from operators.formats.regex import RegexFormat
    from operators.join.hash_join import HashJoin
    from operators.readers.abstract_block_reader import AbstractBlockReader
    from operators.readers.block_reader import BlockReader
    from operators.readers.fs_block_reader import AbstractFSBlockReader
    from operators.readers.scan_reader import ScanReader
    from operators.readers.slice_reader import FSSliceReader
    from operators.sinks.console import Console
    from operators.sinks.csv_writer import CsvWriter
    from operators.sinks.json_lines_writer import JsonLinesWriter
    from operators.sinks.parquet_writer import ParquetWriter
    from operators.sinks.record_writer import RecordWriter
    from operators.transform.filter import Filter
    from operators.transform.flat_map import FlatMap
    from operators.transform.map import Map
    from operators.transform.sample import Sample
    from operators.transform.spark_operator import SparkOperator
    from operators.transform.split import Split
    from operators.transform.union import Union

__all__ = [
    "AbstractBlockReader",
    "AbstractFSBlockReader",
    "AbstractFileSplitter",
    "Average",
    "AvroFormat",
    "BlockReader",
    "Console",
    "Count",
    "CsvFormat",
    "CsvWriter",
    "DatasetInput",
    "Deduplicate",
    "Entity",
    "FSSliceReader",
    "FileInput",
    "FileSplitterBase",
    "FileSplitterInput",
    "Filter",
    "FixedBytesReaderContext",
    "FixedRecordsReaderContext",
    "FixedWidthFormat",
    "FlatMap",
    "HashJoin",
    "JsonLinesFormat",
    "JsonLinesWriter",
    "KeyValue",
    "LineReaderContext",
    "Map",
    "Max",
    "Min",
    "ParquetFormat",
    "ParquetWriter",
    "ReadAheadLineReaderContext",
    "ReaderContext",
    "RecordWriter",
    "RegexFormat",
    "Sample",
    "ScanReader",
    "SparkOperator",
    "Split",
    "Sum",
    "TimeBasedDirectoryScanner",
    "TopN",
    "Tumbling",
    "Union",
    "WindowValue",
]

if not TYPE_CHECKING:  # type checkers know the names above only, so that they find a misspelt one
    _MODULES = {
        "aggregate.aggregate": ["KeyValue"],
        "aggregate.average": ["Average"],
        "aggregate.count": ["Count"],
        "aggregate.deduplicate": ["Deduplicate"],
        "aggregate.max": ["Max"],
        "aggregate.min": ["Min"],
        "aggregate.sum": ["Sum"],
        "aggregate.top_n": ["TopN"],
        "aggregate.tumbling": ["Tumbling", "WindowValue"],
        "contexts.entity": ["Entity", "ReaderContext"],
        "contexts.fixed_bytes": ["FixedBytesReaderContext"],
        "contexts.fixed_records": ["FixedRecordsReaderContext"],
        "contexts.line": ["LineReaderContext"],
        "contexts.read_ahead_line": ["ReadAheadLineReaderContext"],
        "files.dataset_input": ["DatasetInput"],
        "files.file_input": ["FileInput"],
        "files.scanner": ["TimeBasedDirectoryScanner"],
        "files.splitter_base": ["AbstractFileSplitter", "FileSplitterBase"],
        "files.splitter_input": ["FileSplitterInput"],
        "formats.avro": ["AvroFormat"],
        "formats.csv": ["CsvFormat"],
        "formats.fixed_width": ["FixedWidthFormat"],
        "formats.json_lines": ["JsonLinesFormat"],
        "formats.parquet": ["ParquetFormat"],
        "formats.regex": ["RegexFormat"],
        "join.hash_join": ["HashJoin"],
        "readers.abstract_block_reader": ["AbstractBlockReader"],
        "readers.block_reader": ["BlockReader"],
        "readers.fs_block_reader": ["AbstractFSBlockReader"],
        "readers.scan_reader": ["ScanReader"],
        "readers.slice_reader": ["FSSliceReader"],
        "sinks.console": ["Console"],
        "sinks.csv_writer": ["CsvWriter"],
        "sinks.json_lines_writer": ["JsonLinesWriter"],
        "sinks.parquet_writer": ["ParquetWriter"],
        "sinks.record_writer": ["RecordWriter"],
        "transform.filter": ["Filter"],
        "transform.flat_map": ["FlatMap"],
        "transform.map": ["Map"],
        "transform.sample": ["Sample"],
        "transform.spark_operator": ["SparkOperator"],
        "transform.split": ["Split"],
        "transform.union": ["Union"],
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> object:
        """Loads an operator when it is first asked for."""
        if name not in _MODULE_OF:
            from dagflow.errors import suggest

            near = suggest(name, _MODULE_OF)
            raise AttributeError(f"module 'operators' has no {name!r}" + (f"; did you mean {near!r}?" if near else ""))
        import importlib

        value = getattr(importlib.import_module(f"operators.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
