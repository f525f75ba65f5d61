"""What an application is: ports, operators, DAG, modules, attributes and checks."""
