"""`python -m longstride` is `longstride`."""

import sys

from longstride.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
