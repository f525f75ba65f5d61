"""Orders and cycles of a directed graph. Only this module uses networkx."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter


def order(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[str]:
    """Return the nodes in an order in which every edge leads forward, ties as they came. Raises ValueError on a cycle.

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
    ordered: list[str] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, place[name])
        ordered.append(nodes[heapq.heappop(ready)])
        sorter.done(ordered[-1])
    return ordered


def cycles(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return a closed path, such as `[a, b, a]`, for each strongly connected component."""
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
    paths = []
    for component in networkx.strongly_connected_components(graph):
        first = next(n for n in graph if n in component)
        if len(component) > 1 or graph.has_edge(first, first):
            ring = networkx.find_cycle(graph.subgraph(component), first)
            paths.append([ring[0][0], *(edge[1] for edge in ring)])
    return paths
