"""Messages between two processes of one launch, over a pair of sockets that no other process can open."""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from typing import Any

_LENGTH = struct.Struct("=Q")


class ChannelClosed(Exception):
    """The other end is closed: its process has ended."""


class Channel:
    """Sends and receives values, each pickled and behind its length. Several threads may send."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()

    @property
    def is_silent(self) -> bool:
        """Return whether nothing has come, not even the end."""
        self._end.setblocking(False)
        try:
            self._end.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self._end.setblocking(True)
        return False

    def send(self, value: Any) -> None:
        """Send a value. Raises ChannelClosed."""
        data = pickle.dumps(value)
        try:
            with self._sending:
                self._end.sendall(_LENGTH.pack(len(data)))
                self._end.sendall(data)
        except OSError as error:
            raise ChannelClosed from error

    def receive(self) -> Any:
        """Wait for the next value. Raises ChannelClosed."""
        size = _LENGTH.unpack(self._exactly(_LENGTH.size))[0]
        return pickle.loads(self._exactly(size))  # the pair of sockets was made by this launch

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            try:
                count = self._end.recv_into(view[filled:])
            except OSError as error:
                raise ChannelClosed from error
            if not count:
                raise ChannelClosed
            filled += count
        return data

    def close(self) -> None:
        """Close this end."""
        self._end.close()
