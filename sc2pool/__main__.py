"""`python -m sc2pool` is the `sc2pool` command."""

import sys

try:
    from sc2pool.cli.main import main
except KeyboardInterrupt:  # Ctrl-C right after the start
    sys.exit(130)

sys.exit(main())
