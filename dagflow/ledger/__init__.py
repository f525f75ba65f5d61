"""Entries, their rules, and the hash-chained ledger of a dataset.

`Ledger` is the chain: open, append, resume, entries, verify. `read_dataset` reads what is committed. The rest are the values
that entries are made of.

Read in this order:

1. `events`: an entry and its events. `columns`: the schema in them; `codec`: an entry as bytes.
2. `rules`: the rules that entries keep.
3. `tail`: the newest entry. `state`: the state after an entry.
4. `reader`, `snapshots`, `verify`, `chain`: reading, rows that took the place of others, checking, appending.
5. `dataset` and `history`: the files that a ledger names, and its entries as users see them.
"""

from __future__ import annotations

from dagflow.ledger.chain import Ledger
from dagflow.ledger.codec import FORMAT, decode_entry, encode_entry, schema_hash
from dagflow.ledger.dataset.files import committed_files, erase, named_files, read_dataset
from dagflow.ledger.events import (
    DERIVATIVE,
    ROOT,
    AddData,
    CarriedNumbers,
    Checkpoint,
    DataEvent,
    DataFile,
    DataSlice,
    EntryRef,
    Event,
    ExecuteQuery,
    InputSlice,
    KeptFiles,
    LedgerEntry,
    OffsetInterval,
    SchemaField,
    Seed,
    SetSchema,
    SetSource,
    SetTransform,
    SourceState,
    Txn,
    UnknownEvent,
)
from dagflow.ledger.rules.rule import ChainState, Rule
from dagflow.ledger.rules.table import RULES, broken_rules, check_rules
from dagflow.ledger.state import ResumeState, fold, resume, smallest_watermark
from dagflow.ledger.verify import VerifyReport
from dagflow.storage import hash_bytes, new_hash

__all__ = [
    "DERIVATIVE",
    "FORMAT",
    "ROOT",
    "RULES",
    "AddData",
    "CarriedNumbers",
    "ChainState",
    "Checkpoint",
    "DataEvent",
    "DataFile",
    "DataSlice",
    "EntryRef",
    "Event",
    "ExecuteQuery",
    "InputSlice",
    "KeptFiles",
    "Ledger",
    "LedgerEntry",
    "OffsetInterval",
    "ResumeState",
    "Rule",
    "SchemaField",
    "Seed",
    "SetSchema",
    "SetSource",
    "SetTransform",
    "SourceState",
    "Txn",
    "UnknownEvent",
    "VerifyReport",
    "broken_rules",
    "check_rules",
    "committed_files",
    "decode_entry",
    "encode_entry",
    "erase",
    "fold",
    "hash_bytes",
    "named_files",
    "new_hash",
    "read_dataset",
    "resume",
    "schema_hash",
    "smallest_watermark",
]
