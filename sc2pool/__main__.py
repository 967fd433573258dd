"""`python -m sc2pool` is the `sc2pool` command."""

import sys

from sc2pool.cli.main import main

sys.exit(main())
