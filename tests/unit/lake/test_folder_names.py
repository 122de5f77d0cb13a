"""From a key's folder to the name of its dataset, and why a key has none."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lake.dataset_rules import dataset_prefixes, matching_rule, reason_without_dataset, takes_no_folder
from lake.settings import DatasetRule
from lake.settings.declaration import DATASET_NAME
from lake.settings.routing import name_of_folder, rule_conflicts

FOLDERS = (DatasetRule("{folder}"),)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("orders", "orders"),
        ("a__b_", "a__b_"),
        ("web-logs", "web_logs"),
        ("Orders 2026", "orders_2026"),
        ("2026", "d_2026"),
        ("-x-", "x"),
        ("_private", "private"),
        ("Größe", "gr_e"),
        ("", ""),
        ("東京", ""),
        ("a" * 63, "a" * 63),
        ("A" * 64, ""),
    ],
)
def test_a_folder_gets_the_closest_valid_name(folder: str, name: str) -> None:
    assert name_of_folder(folder) == name


@given(st.text())
def test_the_name_is_valid_or_none_and_stays(folder: str) -> None:
    name = name_of_folder(folder)
    assert not name or DATASET_NAME.fullmatch(name)
    assert name_of_folder(name) == name


def test_files_without_a_folder_go_to_the_rule_after_the_folders() -> None:
    rules = (*FOLDERS, DatasetRule("top"))
    assert matching_rule("a.json", rules)[1] == "top"
    assert matching_rule("Web-Logs/a.json", rules)[1] == "web_logs"
    assert takes_no_folder("", rules)
    assert not takes_no_folder("", (DatasetRule("top"),))


def test_a_folder_does_not_get_the_dataset_of_a_rule() -> None:
    # Given a dataset that a rule names
    rules = (DatasetRule("orders", "shop/"), *FOLDERS)
    # Then only a folder with exactly this name is added to it, as before
    assert matching_rule("orders/a.json", rules)[1] == "orders"
    assert matching_rule("Orders/a.json", rules)[1] == ""
    assert reason_without_dataset("Orders/a.json", rules) == (
        "the folder 'Orders' would share the dataset orders, which a rule of [[datasets]] names: add [[datasets]] with "
        "another name and prefix = 'Orders/' before the others"
    )


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("a.json", "which has no folder: add one with a name and without a prefix after the others"),
        ("web/a.json", "add one with a name and prefix = 'web/' after the others"),
        ("in/a.json", "add one with a name and prefix = 'in/' after the others"),
        ("in/東京/a.json", "cannot become a dataset name (1 to 63 lower case letters"),
        ("in/東京/a.json", "prefix = 'in/東京/' before the others"),
        ("in/b/a.json", None),
    ],
)
def test_the_reason_names_the_rule_that_would_take_the_key(key: str, reason: str | None) -> None:
    found = reason_without_dataset(key, (DatasetRule("{folder}", "in/"),))
    assert found is None if reason is None else reason in str(found)


KEYS = [
    f"{prefix}{name}"
    for prefix in ("", "in/", "in/orders/", "orders/", "ord/")
    for name in ("a", "ord", "ordx/a", "orders/a")
]
RULES = st.builds(
    DatasetRule, st.sampled_from(["orders", "{folder}"]), st.sampled_from(["", "in/", "ord", "in/ord", "orders/"])
)


@given(st.lists(RULES, min_size=1, max_size=5))
def test_each_key_of_a_dataset_is_listed_once(rules: list[DatasetRule]) -> None:
    assume(not list(rule_conflicts(rules)))
    prefixes = dataset_prefixes("orders", rules)
    for key in KEYS:
        covering = [prefix for prefix in prefixes if key.startswith(prefix)]
        listed = [
            prefix for prefix in covering if not takes_no_folder(prefix, rules) or "/" not in key.removeprefix(prefix)
        ]
        assert len(listed) <= 1
        assert listed or matching_rule(key, rules)[1] != "orders"
