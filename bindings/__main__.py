"""``python -m windjoin`` is the ``windjoin`` command."""

import sys

from windjoin.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
