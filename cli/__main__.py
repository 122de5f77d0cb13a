"""``python -m cli``."""

from cli.main import run

if __name__ == "__main__":
    run()
