"""`python3 -m recrawl.bootstrap`: set this machine up."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the one file that an older Python gets to read
    sys.exit(
        "Python %d.%d is too old: recrawl needs 3.11, 3.12 or 3.13. "
        "Install one of these and name it: make round PYTHON=python3.12." % sys.version_info[:2]
    )

from recrawl.bootstrap.setup import main  # noqa: E402 - after the check

sys.exit(main())
