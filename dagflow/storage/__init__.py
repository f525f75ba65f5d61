"""Files by URL, and publishing: create-if-absent, atomic, durable.

Entry points: `file_system(url)` for files, `inside(folder, name)` for the paths that stored records give, `open_store(url)` for
records that are published once, `FolderLock` for one launch at a time, `explained` for errors that users can act upon.

Read in this order:

1. `urls` and `confined`: paths.
2. `files` and `store`: the interfaces; `local` and `remote`: the implementations of both; `open`: the choice among them.
3. `records`: the records that are published through a store; `hashes`: their hashes. `packed`: compressed files.
4. `locks`: one launch at a time. `gauge`: the progress of a task, as others see it. `uploads`: those that were not finished.
   `parallel`: several requests at a time.
5. `errors`, `explain` and `transient`: failures.
"""

from __future__ import annotations

from dagflow.storage.confined import OWN_FOLDER, below, inside, is_below, may_follow
from dagflow.storage.explain import explained, translate
from dagflow.storage.files import (
    BinaryReader,
    BinaryWriter,
    FileStatus,
    FileSystem,
    read_fully,
)
from dagflow.storage.gauge import Gauge
from dagflow.storage.hashes import ALGORITHM, FILES_ALGORITHM, hash_bytes, new_hash
from dagflow.storage.local.spill_file import TemporarySpillFile
from dagflow.storage.local.store import LocalStore
from dagflow.storage.locks.folder import FolderLock, lock_holder
from dagflow.storage.locks.holder import Holder
from dagflow.storage.open import file_system, open_planned, open_store, opened_status
from dagflow.storage.packed import MAGIC, PACKED
from dagflow.storage.parallel import at_once
from dagflow.storage.records.sealed import FORMAT, SealedRecord, read_sealed, seal, seal_of, unseal
from dagflow.storage.store import MemoryStore, Store, probe
from dagflow.storage.transient import is_transient
from dagflow.storage.uploads import remove_uploads
from dagflow.storage.urls import absolute, base_name, is_local, is_object_store, join, local_path, split_url

__all__ = [
    "ALGORITHM",
    "FILES_ALGORITHM",
    "FORMAT",
    "MAGIC",
    "OWN_FOLDER",
    "PACKED",
    "BinaryReader",
    "BinaryWriter",
    "FileStatus",
    "FileSystem",
    "FolderLock",
    "Gauge",
    "Holder",
    "LocalStore",
    "MemoryStore",
    "SealedRecord",
    "Store",
    "TemporarySpillFile",
    "absolute",
    "at_once",
    "base_name",
    "below",
    "explained",
    "file_system",
    "hash_bytes",
    "inside",
    "is_below",
    "is_local",
    "is_object_store",
    "is_transient",
    "join",
    "local_path",
    "lock_holder",
    "may_follow",
    "new_hash",
    "open_planned",
    "open_store",
    "opened_status",
    "probe",
    "read_fully",
    "read_sealed",
    "remove_uploads",
    "seal",
    "seal_of",
    "split_url",
    "translate",
    "unseal",
]
