"""The command ``hybrid-router``, also as ``python -m cli``."""

import sys


def run() -> None:
    """Run the command line; Ctrl-C ends it quietly while its modules are imported, too."""
    try:
        from cli.main import run as run_command
    except KeyboardInterrupt:
        sys.exit(130)
    run_command()


if __name__ == "__main__":
    run()
