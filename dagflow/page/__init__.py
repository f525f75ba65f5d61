"""The picture of an application, and the page of a run.

Read in this order:

1. `diagram`: the layout of a DAG, and the DAG as SVG.
2. `run`: the data of a run, from its run folder and ledgers.
3. `document`: the page, which is made of that data and the files of `assets`.
4. `server`: the page, served live.
5. `errors`: the errors of this package.
"""

from dagflow.page.diagram.svg import graph_svg

__all__ = ["graph_svg"]
