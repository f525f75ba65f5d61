"""Data of large runs, made up: as `run_data` returns it."""

from __future__ import annotations

import random
from typing import Any

from dagflow.page.run.data import drawn
from dagflow.planning.view import OperatorView, PlanView, SinkView, StageView, StreamView


def view(operators: int, stages: int = 5, modules: int = 12) -> PlanView:
    """A DAG of many operators: chains that split and join, in stages, some in modules."""
    chance = random.Random(operators)
    each = max(1, operators // stages)
    nodes, streams = [], []
    for n in range(operators):
        stage = min(stages - 1, n // each)
        inside = f"module{n * modules // operators}" if n % 3 else None
        classes = ["Map", "Filter", "FlatMap", "HashJoin", "RecordWriter"]
        nodes.append(
            OperatorView(
                name=f"{'module' if inside else 'operator'}.step_{n:04}",
                class_name=chance.choice(classes),
                module="app",
                where=f"app.py:{n}",
                properties=(),
                inputs=(),
                outputs=(),
                placement="parallel",
                why="parallel with the reader",
                stage=f"s{stage}",
                inside=inside,
            )
        )
        for source in {chance.randrange(max(0, n - 12), n) for _ in range(chance.choice([1, 1, 2]))} if n else ():
            crosses = min(stages - 1, source // each) != stage
            sink = SinkView(port=f"{nodes[n].name}.input", exchange="hash by key" if crosses else None)
            where = f"app.py:{n}"
            streams.append(
                StreamView(
                    name=f"stream_{source}_{n}", source=f"{nodes[source].name}.output", sinks=(sink,), where=where, type="Row"
                )
            )
    stage_views = tuple(
        StageView(name=f"s{k}", operators=tuple(o.name for o in nodes if o.stage == f"s{k}"), head=nodes[k * each].name, level=k)
        for k in range(stages)
    )
    names = dict.fromkeys(o.inside for o in nodes if o.inside is not None)
    parts = tuple(
        OperatorView(name=name, class_name="Part", module="app", where="app.py:1", properties=(), inputs=(), outputs=())
        for name in names
    )
    return PlanView(
        application="synthetic", step="staged", operators=tuple(nodes), streams=tuple(streams), stages=stage_views, modules=parts
    )


def run(operators: int, windows: int, tasks: int = 4000) -> dict[str, Any]:
    """A run of a synthetic DAG over many windows."""
    chance = random.Random(windows)
    graph = drawn(view(operators))
    numbers = range(windows)
    planned = [n * 500 + chance.randrange(80) for n in numbers]
    table: dict[str, Any] = {
        "t0": 1.7e9,
        "left_out": 0,
        "window": list(numbers),
        "planned": planned,
        "started": [at + chance.randrange(5, 20) for at in planned],
        "decided": [at + chance.randrange(300, 900) for at in planned],
        "done": [at + 950 for at in planned],
        "launches": ["20260101T000000-aaaaaa"],
        "launch": [0] * windows,
    }
    for name in ("items", "tasks", "files", "retries", "steals"):
        table[name] = [chance.randrange(9) if name != "retries" else 0 for _ in numbers]
    for name in ("bytes", "written", "records"):
        table[name] = [chance.randrange(10**6) for _ in numbers]
    for name in ("read", "compute", "write", "wait"):
        table[name] = [round(chance.random(), 3) for _ in numbers]
    rows = []
    for n in range(tasks):
        window, parts = windows - 1 - n // 40, [chance.randrange(120) for _ in range(4)]
        start = planned[max(0, window)] + chance.randrange(40)
        item = {"path": f"/data/in/{chance.randrange(10**6):06}.log", "start": 0, "stop": chance.randrange(10**6)}
        task = [
            max(0, window),
            f"s{n % 5}-{n % 40:04}",
            start,
            start + sum(parts),
            chance.randrange(10**5),
            *parts,
            [item, n % 3],
        ]
        rows.append(task)
    names = [node["name"] for node in graph["nodes"]]
    figures = {
        name: {
            "records_in": chance.randrange(10**9),
            "records_out": chance.randrange(10**9),
            "errors": 0,
            "converted": 0,
            "seconds": round(chance.random() * 100, 3),
            "counters": {},
        }
        for name in names
    }
    run: dict[str, Any] = dict.fromkeys(("ui", "error", "seconds", "slot_use", "resume"))
    run |= {
        "application": "synthetic",
        "status": "done",
        "runner": "local",
        "slots": 4,
        "outputs": ["/data/out"],
        "sinks": [{"operator": "table", "destination": "the Delta table /data/table", "rows": 1_234}],
        "run_folder": "/data/out/_dagflow",
    }
    run |= {
        "launch": table["launches"][0],
        "started": 1.7e9,
        "last": 1.7e9 + windows / 2,
        "first_window": 0,
        "decided": windows,
        "planned": windows,
    }
    live: dict[str, Any] = {name: [] for name in ("steals", "warnings", "retries", "expectations")}
    live |= {"operators": {}, "waiting": {}, "fractions": {}, "backlog": None, "remaining": None, "stolen": 0, "stolen_bytes": 0}
    live["curve"] = [[1.7e9 + n * windows / 800, chance.randrange(10**6), 0] for n in range(400)]
    live["readers"] = [
        [1.7e9 + n * windows / 800, n, names[0], n % 7 + 1, (n + 1) % 7 + 1, chance.randrange(10**6), 0] for n in range(400)
    ]
    line = "2026-11-22T10:00:00 INFO a line of the input that is of usual length"
    source = {
        "path": "/data/in/a.log",
        "position": 17,
        "length": len(line),
        "line": 3,
        "text": line,
        "how": "the task was run again up to this row",
    }
    sample = [
        {
            "dataset": "/data/out",
            "offset": n,
            "file": "part-000000-0000",
            "row": n,
            "text": line,
            "window": windows - 1,
            "entry": 3,
            "committed": 1.7e9,
            "operator": names[-1],
            "task": "s0-0000",
            "head": names[0],
            "ranges": [{"path": "/data/in/a.log", "start": 0, "stop": 100}],
            "more_ranges": 0,
            "remarks": [],
            "source": source,
        }
        for n in range(20)
    ]
    return {
        "v": 1,
        "at": 1.7e9 + windows,
        "dagflow": "0.1.0",
        "output": "/data/out",
        "run": run,
        "launches": [],
        "graph": graph,
        "operators": figures,
        "exchanges": {},
        "windows": table,
        "tasks": {"t0": 1.7e9, "rows": rows},
        "live": live,
        "rejects": [],
        "findings": [],
        "settings": [],
        "versions": {},
        "ledgers": [],
        "problems": [],
        "rows": sample,
    }
