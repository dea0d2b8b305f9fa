"""`python -m aerotape` is the command `aerotape`."""

import sys

from aerotape.tools._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
