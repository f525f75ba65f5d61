"""The DAG as a networkx graph; nobody outside this room sees it."""

from __future__ import annotations

from collections.abc import Iterable


def order(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[str]:
    """Nodes such that every edge leads forward, ties in the order given. Raises ValueError on a cycle."""
    import networkx

    nodes = list(nodes)
    graph = networkx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    place = {name: i for i, name in enumerate(nodes)}
    try:
        return list(networkx.lexicographical_topological_sort(graph, key=place.__getitem__))
    except networkx.NetworkXUnfeasible as error:
        raise ValueError("cycle") from error


def cycles(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """One closed path for every knot of circles: `[a, b, a]`."""
    import networkx

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


def components(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The groups of nodes that hang together, each in the order given."""
    import networkx

    nodes = list(nodes)
    graph = networkx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return [[n for n in nodes if n in group] for group in networkx.connected_components(graph)]
