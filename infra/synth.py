"""Synthesis in this process, for the CDK app, the local cloud, the demo and the tests."""

import tempfile
from pathlib import Path

from lake.settings import Settings

CHECKOUT = Path(__file__).parents[1]


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
    environment's libraries. The jobs' arguments are the only difference in the template. Raises ``AssetError``: the
    wheels belong to another checkout.
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
