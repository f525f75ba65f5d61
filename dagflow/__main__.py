"""`python -m dagflow`: the same as the command `dagflow`."""

import sys

from dagflow.cli.main import process

if __name__ == "__main__":
    sys.exit(process())
