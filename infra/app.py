"""The CDK app: ``cdk deploy -c stage=prod`` reads settings/prod.toml, ``-c settings=<path>`` another file.

``-c local=true`` is for the local cloud: its jobs use this environment's libraries, and need no wheels.
"""

import json
import os
import sys
from pathlib import Path

from jsii.errors import JSIIError

from infra.synth import CHECKOUT, synth
from infra.wheels import JobRuntime
from lake.errors import HybridRouterError, InvalidSettingsError
from lake.settings import load_settings

DEFAULT_STAGE = "dev"


def main() -> int:
    """Synthesize the stack for the CDK command line; returns the exit code.

    If the settings or an asset are wrong, or CDK refuses the stack, it prints one sentence to stderr and returns 1.
    """
    context = json.loads(os.environ.get("CDK_CONTEXT_JSON", "{}"))
    try:
        settings = load_settings(settings_file(context))
        stage = context.get("stage", settings.stage)
        if stage != settings.stage:
            expected = f"expected {stage!r}, which was asked for: the stack of another stage would be changed"
            raise InvalidSettingsError("stage", settings.stage, expected)
        out_dir = Path(os.environ.get("CDK_OUTDIR", "cdk.out"))
        wheels = None if context.get("local") == "true" else CHECKOUT / JobRuntime.glue().zip
        synth(settings, out_dir, checked=True, wheels=wheels)
    # CDK's errors are RuntimeErrors, such as that for more than 500 resources; those of its runtime JSIIErrors, such as
    # that for a home folder in which it may not write.
    except (HybridRouterError, RuntimeError, JSIIError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def settings_file(context: dict[str, str]) -> Path:
    """The settings file that CDK's context selects: by ``settings``, else by ``stage``, which is ``dev`` by default."""
    if "settings" in context:
        return Path(context["settings"])
    return CHECKOUT / "settings" / f"{context.get('stage', DEFAULT_STAGE)}.toml"


if __name__ == "__main__":
    sys.exit(main())
