"""`python3 -m recrawl.bootstrap`: set this machine up."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the one file that an older Python gets to read
    sys.exit(
        f"Python {sys.version_info[0]}.{sys.version_info[1]} is too old: recrawl needs 3.11, 3.12 or 3.13. "
        "Install one of these and name it: make round PYTHON=python3.12."
    )

from recrawl.bootstrap.setup import main

sys.exit(main())
