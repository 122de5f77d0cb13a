"""The environment of child processes is built from scratch, not from the user's."""

from local.isolation import REGION, AccessKey, isolated_environment

ENDPOINT = "http://127.0.0.1:1"


def test_only_what_programs_need_to_start_is_kept():
    users_environment = {
        "PATH": "/bin",
        "HOME": "/home/someone",
        "AWS_PROFILE": "work",
        "AWS_SESSION_TOKEN": "real",
        "AWS_ENDPOINT_URL_S3": "https://elsewhere",
        "https_proxy": "http://proxy",
        "JAVA_TOOL_OPTIONS": "-Dhttp.proxyHost=proxy",
        "PYTHONPATH": "/somewhere",
        "ANYTHING": "else",
    }
    environment = isolated_environment(ENDPOINT, AccessKey("AKIAOWN", "secret"), users_environment)
    assert {name for name in environment if not name.startswith(("AWS_", "PYTHON"))} == {
        "PATH",
        "HOME",
        "BOTO_CONFIG",
        "NO_PROXY",
        "no_proxy",
        "TZ",
    }
    assert "PYTHONPATH" not in environment
    assert {name: value for name, value in environment.items() if name.startswith("AWS_")} == {
        "AWS_ACCESS_KEY_ID": "AKIAOWN",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": ENDPOINT,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
