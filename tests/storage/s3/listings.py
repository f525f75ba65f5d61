"""Listings of a bucket as it was some writes ago, for a proxy that serves them as a store does that is not consistent."""

from __future__ import annotations

import re
import threading
import urllib.parse
from collections.abc import Iterable, Mapping

import attrs

from tests.storage.s3 import servers

_ENTRY = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)
_KEY = re.compile(rb"<Key>(.*?)</Key>", re.DOTALL)
_HEAD = b'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'


@attrs.define
class History:
    """The objects of a bucket after each write through the proxy: entries of listings by encoded key."""

    server: str
    bucket: str
    states: list[dict[str, bytes]] = attrs.field(init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.states = [self._listed("")]

    def note(self, keys: Iterable[str]) -> None:
        """Note what has become of objects that were written or removed."""
        with self._lock:
            state = dict(self.states[-1])
            for key in keys:
                encoded = urllib.parse.quote(key)
                state.pop(encoded, None)
                state |= {each: entry for each, entry in self._listed(key).items() if each == encoded}
            self.states.append(dict(sorted(state.items())))

    def _listed(self, prefix: str) -> dict[str, bytes]:
        state: dict[str, bytes] = {}
        page = {"list-type": "2", "encoding-type": "url", "prefix": prefix}
        while True:
            path = f"/{self.bucket}?{urllib.parse.urlencode(page)}"
            answer = servers.ask(f"http://{self.server}", "GET", path)[1]
            state |= {_KEY.findall(entry)[0].decode(): entry for entry in _ENTRY.findall(answer)}
            if b"<IsTruncated>true" not in answer:
                return state
            page["start-after"] = urllib.parse.unquote_plus(list(state)[-1])

    def answer(self, query: Mapping[str, str], lag: int) -> bytes:
        """Return the answer to a request for a listing, as it was so many writes ago."""
        state = self.states[max(0, len(self.states) - 1 - lag)]
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        contents, folders = b"", set()
        for encoded, entry in state.items():
            key = urllib.parse.unquote_plus(encoded)
            if not key.startswith(prefix):
                continue
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            if end < 0:
                contents += entry
            else:
                folders.add(urllib.parse.quote(key[: end + 1]))
        common = b"".join(b"<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>" % each.encode() for each in sorted(folders))
        fields = b"<Name>%s</Name><IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>" % self.bucket.encode()
        return _HEAD + fields + contents + common + b"</ListBucketResult>"
