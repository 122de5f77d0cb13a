"""``cdk diff`` and ``cdk deploy`` work on the local cloud as docs/commands.md describes them."""

import re
from pathlib import Path

from infra.synth import synth
from lake.settings import AlarmSettings, ProtectionSettings, Settings
from local.cloud import LocalCloud
from tests.unit.infra.npm_packages import run_cdk


def test_diff_shows_a_changed_setting_and_deploy_applies_it(tmp_path: Path) -> None:
    with LocalCloud.start(tmp_path / "state") as cloud:

        def cdk(assembly: Path, *arguments: str) -> tuple[int, str]:
            """Run the CDK command line as the principal that has deployed the stack."""
            environment = {**cloud.environment, "HOME": str(tmp_path)}
            return run_cdk(tmp_path, environment, *arguments, "--app", str(assembly))

        # Given a deployed stack, without any difference.
        diff = ("diff", "--fail", "--method=template")
        unchanged = synth(Settings(stage="cdk"), tmp_path / "unchanged")
        outputs = cloud.deploy(unchanged)
        code, printed = cdk(unchanged, *diff)
        assert (code, "Number of stacks with differences: 0" in printed) == (0, True), printed
        # When the app has another limit of an alarm, then diff names it.
        other = Settings(stage="cdk", alarms=AlarmSettings(daily_dollars=7), protection=ProtectionSettings(True, True))
        changed = synth(other, tmp_path / "changed")
        code, printed = cdk(changed, *diff)
        assert code == 1, printed
        assert re.search(r"\[~\] AWS::CloudWatch::Alarm .*DailyDollars", printed), printed
        # When it is deployed, then the alarm has it, every bucket and the ledger stay, and nothing is left to deploy.
        code, printed = cdk(changed, "deploy", "--require-approval=never", "--method=direct")
        assert code == 0, printed
        alarms = cloud.client("cloudwatch").describe_alarms(AlarmNamePrefix="hybrid-router-cdk-")["MetricAlarms"]
        assert [alarm["Threshold"] for alarm in alarms if "DailyDollars" in alarm["AlarmName"]] == [7]
        assert cloud.deploy(changed) == outputs
        code, printed = cdk(changed, *diff)
        assert code == 0, printed
