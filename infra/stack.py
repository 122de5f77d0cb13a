"""The CloudFormation stack of one stage."""

from pathlib import Path

from aws_cdk import CfnOutput, DefaultStackSynthesizer, Stack, Tags
from constructs import Construct

from infra.alarms import add_alarm_topic, add_alarms
from infra.arrivals import ArrivalQueues
from infra.assets import Assets, asset_prefix
from infra.encryption import encrypt, grant_key
from infra.engines import Engines
from infra.functions import SPECS, TABLES, RouterFunction
from infra.jobs import JobParts
from infra.machines import Machines
from infra.names import CODE_MARK, StackOutputs, code_version, stack_name
from infra.permissions import Grants, add_optimizer, grant_functions, grant_jobs, grant_urgency, grant_verification
from infra.records import Records
from infra.schedules import Schedules
from infra.storage import Catalog, Storage
from lake import layout
from lake.resource_names import BATCH_JOB_SUFFIX, ResourceNames
from lake.settings import Settings
from lake.settings.model import STAGE_TAG


class HybridRouterStack(Stack):
    """Storage, functions, jobs, machines, schedules, catalog and alarms of one stage, for any account and region."""

    def __init__(
        self, scope: Construct, settings: Settings, checkout: Path, workspace: Path, wheels: Path | None
    ) -> None:
        name = stack_name(settings.stage)
        synthesizer = DefaultStackSynthesizer(bucket_prefix=asset_prefix(name))
        code = f"{CODE_MARK}{code_version(checkout)}"
        description = f"hybrid-router: NDJSON to Parquet, soon or cheaply, exactly once; {code}"
        super().__init__(
            scope, name, description=description, synthesizer=synthesizer, suppress_template_indentation=True
        )
        Tags.of(self).add(STAGE_TAG, settings.stage)
        for tag in settings.tags:
            Tags.of(self).add(*tag.split("=", 1))
        # The stack has bound a copy, which shares its list of assets with this object; Python cannot reach the copy.
        synthesizer.bind(self)
        assets = Assets(self, checkout, settings, workspace, wheels, synthesizer)
        storage = Storage(self, "Storage", settings)
        arrivals = ArrivalQueues(self, "Arrivals", settings.input.event_window_seconds)
        arrivals.listen_to(storage.input)
        resources = ResourceNames(
            input_bucket=storage.input.bucket_name,
            lake_bucket=storage.lake.bucket_name,
            quarantine_bucket=storage.quarantine.bucket_name,
            control_bucket=storage.control.bucket_name,
            ledger_table=storage.ledger.table_name,
            stream_job=f"{name}-stream",
            batch_job=f"{name}{BATCH_JOB_SUFFIX}",
            # With underscores: Athena would require quotes around a name with hyphens.
            catalog_database=name.replace("-", "_"),
        )
        catalog = Catalog(self, "Catalog", resources, storage)
        router, environment = Construct(self, "Router"), resources.to_environment()
        functions = {
            spec.name: RouterFunction(router, spec, assets.functions, environment, name)
            for spec in SPECS
            if settings.has_tables or spec.name != TABLES
        }
        engines = Engines(self, JobParts(settings, assets, resources), functions)
        grants = Grants(storage, catalog, engines)
        grant_functions(grants, functions)
        grant_jobs(grants)
        grant_urgency(grants, functions["route"].role, settings.datasets)
        if settings.verify.share:
            grant_verification(grants)
        if settings.spark.ui_logs:
            for role in engines.roles:
                grants.write_control(role, layout.SPARK_LOGS)
        if settings.tables.compaction and TABLES in functions:
            add_optimizer(self, settings, catalog, storage, functions[TABLES])
        arrivals.deliver_to(functions["route"])
        topic = add_alarm_topic(self, settings.alarms.email)
        machines = Machines(self, "Machines", settings, resources, functions, engines, storage.control, topic)
        schedules = Schedules(self, "Schedules", settings, machines, functions, arrivals.dead_letters)
        if settings.records:
            Records(self, "Records", settings, name, storage.input)
        roles = [item.role for item in functions.values()] + [item.role for item in machines.all]
        grant_key(settings, engines.roles, [*roles, schedules.role, *engines.roles])
        add_alarms(
            self,
            stack=name,
            topic=topic,
            arrivals=arrivals,
            functions=functions,
            machines=machines,
            alarm_lines=engines.count_alarm_lines(self, name),
            settings=settings,
        )
        outputs = StackOutputs(
            resources=resources,
            overnight=machines.overnight.state_machine.state_machine_arn,
            backfill=machines.backfill.state_machine.state_machine_arn,
            stream_window=machines.stream_window.state_machine.state_machine_arn,
            overnight_schedule=schedules.overnight.ref,
            backfill_function=functions["backfill"].function.function_name,
            **{
                name: functions[name].function.function_name
                for name in ("stream_control", "plan", "promote", "reprocess", "resubmit", "sweep")
            },
            alarm_topic=topic.topic_arn,
            arrivals_queue=arrivals.queue.queue_url,
            dead_letters=arrivals.dead_letters.queue_url,
            shards=settings.shards,
            records={record.name: record.dataset for record in settings.records},
            stream_application=engines.stream_application,
            tables=functions[TABLES].function.function_name if TABLES in functions else "",
        )
        if settings.encryption.kms_key:
            encrypt(self, settings.encryption.kms_key)
        for key, value in outputs.to_outputs().items():
            # Constructs and outputs share one namespace of logical ids, so the construct's id differs from the key.
            CfnOutput(self, f"Output{key}", value=value).override_logical_id(key)
