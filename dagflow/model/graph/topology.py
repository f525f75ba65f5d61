"""The DAG as a networkx graph, which is private to this package."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter


def order(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[str]:
    """Nodes such that every edge leads forward, ties in the order given. Raises ValueError on a cycle.

    By the standard library: networkx is 0.1 s of imports, which each command would pay for.

    >>> order(["c", "b", "a"], [("a", "b")])
    ['c', 'a', 'b']
    """
    nodes = list(nodes)
    place = {name: i for i, name in enumerate(nodes)}
    sorter = TopologicalSorter(dict.fromkeys(nodes, ()))
    for start, end in edges:
        sorter.add(end, start)
    try:
        sorter.prepare()
    except CycleError as error:
        raise ValueError("cycle") from error
    ready: list[int] = []
    found: list[str] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, place[name])
        found.append(nodes[heapq.heappop(ready)])
        sorter.done(found[-1])
    return found


def cycles(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """One closed path for every knot of circles: `[a, b, a]`."""
    nodes, edges = list(nodes), list(edges)
    try:
        order(nodes, edges)
    except ValueError:
        import networkx
    else:
        return []
    graph = networkx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    found = []
    for component in networkx.strongly_connected_components(graph):
        first = next(n for n in graph if n in component)
        if len(component) > 1 or graph.has_edge(first, first):
            ring = networkx.find_cycle(graph.subgraph(component), first)
            found.append([ring[0][0], *(edge[1] for edge in ring)])
    return found
