"""`python -m sc2pool` does the same as the command `sc2pool`."""

import sys

try:
    from sc2pool.cli.main import main
except KeyboardInterrupt:  # the user pressed Ctrl-C during the imports
    sys.exit(130)

sys.exit(main())
