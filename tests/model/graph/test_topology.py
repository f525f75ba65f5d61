"""Orders and circles of a DAG's operators."""

from __future__ import annotations

from itertools import pairwise

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.model.graph.topology import cycles, order

EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14)


@given(st.permutations([f"n{i}" for i in range(8)]), EDGES)
def test_it_is_the_order_that_networkx_gives(nodes: list[str], pairs: list[tuple[int, int]]) -> None:
    edges = [(f"n{start}", f"n{end}") for start, end in pairs]
    graph = networkx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    if not networkx.is_directed_acyclic_graph(graph):
        with pytest.raises(ValueError, match="cycle"):
            order(nodes, edges)
        found = cycles(nodes, edges)
        assert found
        for ring in found:
            assert ring[0] == ring[-1]
            assert all(graph.has_edge(*step) for step in pairwise(ring))
        return
    assert order(nodes, edges) == list(networkx.lexicographical_topological_sort(graph, key=nodes.index))
    assert cycles(nodes, edges) == []
