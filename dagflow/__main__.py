"""`python -m dagflow`: the same as the command `dagflow`."""

import sys

from dagflow.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
