"""Manifests to published Parquet, the same in both lanes. The steps of ``convert.py``, in order:

claim    claim_manifest.py; poison_manifest.py when no attempt is left; lease.py renews what is claimed
plan     plan_attempt.py: files to splits and tasks (splits.py, task_model.py), sized by output_ratio.py
run      spark_job.py runs run_task.py on every core: read_ahead.py, source.py -> columns.py
         -> parquet_writer.py, quarantine_writer.py -> upload.py
audit    audit.py: what was written adds up to what was read
commit, publish, or give up   finalize.py; exclusions.py names files that the next attempt leaves out

A job starts in job_main.py (job_arguments.py, clients.py), works with a context.py and returns an outcome.py.
"""
