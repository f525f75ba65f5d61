"""The DAG as a drawing.

Read in this order:

1. `layout`: places for nested boxes, and routes for the streams between them.
2. `picture`: a plan view as such boxes: driver and stages, modules, operators.
3. `svg`: a picture as SVG.
"""
