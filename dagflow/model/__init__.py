"""The model of an application: ports, operators, DAG, modules, attributes and checks."""
