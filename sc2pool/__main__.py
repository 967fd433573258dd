"""`python -m sc2pool` is the `sc2pool` command."""

import sys

try:
    from sc2pool.cli.main import main
except KeyboardInterrupt:  # the user pressed Ctrl-C during the imports
    sys.exit(130)

sys.exit(main())
