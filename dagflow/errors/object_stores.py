"""What servers of files refuse: object stores, HTTP (DF423 to DF426).

StorageError
├── StorageBusy
│   └── StorageUnreachable   DF423   no connection to the server of a URL
├── CredentialsMissing       DF424   a server wants keys that are not there, or refuses those that are
├── BucketMissing            DF425   there is no such bucket
└── FolderPage               DF426   a URL of HTTP where the server shows a folder as a page
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors.surroundings import StorageBusy, StorageError


@attrs.define(slots=False, eq=False, str=False, repr=False)
class StorageUnreachable(StorageBusy):
    """There is no connection to the server of a URL. It is tried again, and may pass."""

    code: ClassVar[str] = "DF423"

    def what(self) -> str:
        return f"its server cannot be reached ({self.reason})"

    def advice(self) -> str:
        return "Look at the URL, and at the endpoint that the environment names (S3: AWS_ENDPOINT_URL), then launch again."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class CredentialsMissing(StorageError):
    """The server wants keys, and there are none, or it refuses those that there are."""

    code: ClassVar[str] = "DF424"

    def what(self) -> str:
        return f"the server wants other credentials ({self.reason})"

    def advice(self) -> str:
        return "S3 takes them from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from ~/.aws, or from the machine's role."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class BucketMissing(StorageError):
    """There is no such bucket. dagflow makes none: who may read it is for its owner to say."""

    code: ClassVar[str] = "DF425"

    def what(self) -> str:
        return "there is no such bucket"

    def advice(self) -> str:
        return "Look at its name, or make it first: dagflow makes no buckets."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class FolderPage(StorageError):
    """A URL of HTTP where the server answers with a page of HTML that stands for a folder."""

    code: ClassVar[str] = "DF426"

    def what(self) -> str:
        return "the server answers with a page of HTML, as it does for folders"

    def advice(self) -> str:
        return "HTTP has no folders: name the files, each by its URL."
