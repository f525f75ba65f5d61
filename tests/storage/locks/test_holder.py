from __future__ import annotations

import os

import attrs

from dagflow.storage.locks import holder
from dagflow.storage.locks.holder import Holder


def test_who_is_dead(monkeypatch):
    me = Holder.this_process(now=1_700_000_000.0, who="me")
    assert me.since == "2023-11-14T22:13:20Z"
    assert Holder.from_bytes(me.to_bytes()) == me
    assert Holder.from_bytes(b'{"pid": 3, "host": "box", "later": 1}') == Holder(pid=3, host="box", since="")
    assert not me.is_dead()
    assert me.is_observable()
    assert not attrs.evolve(me, host="far away").is_observable()
    boot, space = me.machine.split(" ")
    assert attrs.evolve(me, born="1").is_dead(), "another process of the same number"
    assert attrs.evolve(me, machine=f"other-boot {space}").is_dead(), "the machine was started again"
    assert not attrs.evolve(me, machine=f"other-boot {space}", lease=60.0).is_dead(), "two machines may have one name"
    assert not attrs.evolve(me, machine=f"{boot} pid:[1]", pid=1 << 30).is_dead(), "in another container: not to be seen"
    assert not attrs.evolve(me, machine=f"{boot} pid:[1]").is_observable()
    assert not attrs.evolve(me, host="far away", pid=1 << 30).is_dead(), "on another machine: not to be seen"
    assert attrs.evolve(me, pid=1 << 22, born="").is_dead()
    assert not attrs.evolve(me, pid=1, born="").is_dead()
    assert not attrs.evolve(me, pid=1 << 70, born="").is_dead()


def test_a_system_that_tells_nothing_but_process_numbers(monkeypatch):
    monkeypatch.setattr(holder, "_machine", lambda: "")
    monkeypatch.setattr(holder, "_born", lambda pid: "")
    me = Holder.this_process(now=0.0)
    assert not me.is_dead()
    assert attrs.evolve(me, pid=1 << 22).is_dead()

    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not me.is_dead()
