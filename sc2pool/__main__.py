"""`python -m sc2pool` is the `sc2pool` command."""

import sys

try:
    from sc2pool.cli.main import main
except KeyboardInterrupt:  # Ctrl-C before the command has begun
    sys.exit(130)

sys.exit(main())
