"""Pure functions from a plan view or a run report to text, Mermaid, SVG and HTML."""
