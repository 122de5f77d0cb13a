"""Which published manifests are withdrawn so that files that have changed are converted in place of their old rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from lake.manifest import ObjectVersion
from lake.texts import format_count
from offline.converted_files import has_lines
from offline.output_folder import OutputFolder


def withdraw_changed(output: OutputFolder, found: Iterable[ObjectVersion]) -> dict[str, str]:
    """Withdraw the manifests of files that have changed; all files of such a manifest can then be converted again.

    ``found`` are the files of this call. Files of a manifest share its Parquet files: where one that has lines is not
    among those of the call, nothing is withdrawn. Returns dict URIs of files that cannot be replaced, with the reason.
    """
    same: Counter[str] = Counter()
    changed: defaultdict[str, list[str]] = defaultdict(list)
    for file in found:
        version = output.converted.version_with_lines(file)
        if version is None:
            continue
        if version.is_of(file):
            same[version.manifest] += 1
        else:
            changed[version.manifest].append(file.uri)
    refused: dict[str, str] = {}
    for manifest, uris in changed.items():
        missing = sum(map(has_lines, output.sources(manifest))) - same[manifest] - len(uris)
        if missing > 0:
            verb = "is" if missing == 1 else "are"
            refused |= dict.fromkeys(
                uris,
                f"it has changed, and its Parquet files have rows of {format_count(missing, 'file')} that {verb} not "
                "among those of this call: name those too, or convert into a new folder",
            )
        else:
            output.withdraw(manifest)
    return refused
