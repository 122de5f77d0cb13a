"""The CDK app: ``cdk deploy -c stage=prod`` reads settings/prod.toml, ``-c settings=<path>`` another file.

``-c local=true`` is for the local cloud: its jobs use this environment's libraries, and need no wheels. The local
cloud, the demo and the tests call ``synth`` in their own process.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from lake.errors import HybridRouterError, InvalidSettingsError
from lake.settings import Settings, load_settings

CHECKOUT = Path(__file__).parents[1]
DEFAULT_STAGE = "dev"


def synth(
    settings: Settings,
    out_dir: Path,
    *,
    checked: bool = False,
    wheels: Path | None = None,
) -> Path:
    """Write the cloud assembly (template, assets, manifest) to ``out_dir``; returns ``out_dir``.

    ``checked``: also run cdk-nag's AwsSolutions rules; a finding without a written reason makes the synthesis fail.
    ``wheels``: the zip of wheels that the jobs install on Glue; None for the local cloud, whose jobs use this
    environment's libraries. Only the jobs' arguments differ in the template. Raises ``AssetError`` if the wheels belong
    to another checkout.
    """
    from aws_cdk import App, Validations  # noqa: PLC0415

    from infra.stack import HybridRouterStack  # noqa: PLC0415

    app = App(outdir=str(out_dir), analytics_reporting=False)
    if checked:
        from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415

        Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as workspace:
        HybridRouterStack(app, settings, CHECKOUT, Path(workspace), wheels)
        app.synth()
    return out_dir


def main() -> int:
    """Synthesize the stack for the CDK command line; returns the exit code.

    If the settings or an asset are wrong, or CDK refuses the stack, it prints one sentence to stderr and returns 1.
    """
    from jsii.errors import JSIIError  # noqa: PLC0415

    from infra.wheels import JobRuntime  # noqa: PLC0415

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
    # CDK's errors are RuntimeErrors, such as for more than 500 resources; its runtime's errors are JSIIErrors, such as
    # for a home folder that it cannot write.
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
