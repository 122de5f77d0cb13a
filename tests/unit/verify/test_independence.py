"""The verification shares no code with the conversion: what it imports does not import it either."""

import subprocess
import sys

PROBE = """
import pkgutil, sys, verify
for module in pkgutil.iter_modules(verify.__path__, "verify."):
    __import__(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_no_module_of_the_conversion_is_loaded() -> None:
    loaded = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True).stdout.split()
    assert "lake" in loaded
    assert not {"ndjson_arrow", "transform", "batch_job", "streaming_job", "router", "pyspark", "obstore"} & set(loaded)
