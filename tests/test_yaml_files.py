"""YAML that people write: plain values are read as PyYAML reads them, and what could do harm is named by its line."""

import itertools
import re
import string

import pytest
import yaml
from hypothesis import given, strategies as st

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import MAX_YAML, load_yaml

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.dates()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


class Plain(yaml.SafeDumper):
    """Writes equal values out instead of referring to the first of them."""

    def ignore_aliases(self, data: object) -> bool:
        return True


@given(VALUES)
def test_plain_values_are_read_as_they_were_written(value):
    text = yaml.dump(value, Dumper=Plain)
    assert load_yaml(text, "x.yaml") == load_yaml(text.encode(), "x.yaml") == value


@given(st.text(max_size=60) | st.binary(max_size=60), st.booleans())
def test_any_text_is_read_or_refused_by_name(data, text_only):
    try:
        load_yaml(data, "x.yaml", text_only=text_only)
    except ConfigError as error:
        assert re.fullmatch(r"x\.yaml: is not YAML that is read here \(.+\)\. Fix: .*", str(error))  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: [2", "line [23]: "),
        ("a: &one x\nb: *one", r"line 2: aliases \(\*name\) are not read"),
        ("a: 1\nb: 2\na: 3", "line 3: 'a' appears here twice"),
        ("a:\n  b: {c: 1, c: 2}", "line 2: 'c' appears here twice"),
        ("x" * 500 + ": 1\n" + "x" * 500 + ": 2", r"line 2: 'x{100}' appears here twice"),
        ("a: " + "9" * 401, "line 1: a number of 401 characters"),
        ("a: 0x" + "f" * 5000, "a number of 5002 characters"),
        ("a: " + "1:" * 300 + "1.0", "a number of 603 characters"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: 2025-13-45", "month must be in 1..12"),
        ("? [a]\n: 1", "line 1: found unhashable key"),
        ("[" * 100_000, "nested too deeply"),
        ("a: 1\n---\nb: 2", "line 2: but found another document"),
        (b"a: \xff", "decode|invalid start byte|invalid leading"),
        ("a: \x00", "(special|control) characters are not allowed"),
        ("#" * (MAX_YAML + 1), f"more than {MAX_YAML}"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text, said):
    with pytest.raises(ConfigError, match=rf"^some/x\.yaml: .*{said}.*Fix: "):
        load_yaml(text, "some/x.yaml")


@given(VALUES)
def test_text_only_leaves_every_scalar_as_it_was_written(value):
    text = yaml.dump(value, Dumper=Plain)
    assert load_yaml(text, "x.yaml", text_only=True) == yaml.load(text, Loader=yaml.BaseLoader)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: ]", "line 2: "),
        ("a: &one x\nb: *one", r"line 2: aliases \(\*name\) are not read"),
        ("a:\n  b: {1: 1, 1: 2}", "line 2: '1' appears here twice"),
        ("[" * 100_000, "nested too deeply|max depth"),
        ("{a: " * 900 + "1" + "}" * 900, "nested too deeply"),
        ("- " * 50_000, "nested too deeply|max depth"),
        (b"a: \xff", "UTF-8|invalid start byte"),
    ],
)
def test_text_only_refuses_what_could_do_harm_as_well(text, said):
    with pytest.raises(ConfigError, match=rf"^x\.yaml: .*({said}).*Fix: "):
        load_yaml(text, "x.yaml", text_only=True)


def test_a_few_lines_of_aliases_are_refused_before_they_grow():
    names = string.ascii_lowercase
    lines = [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in itertools.pairwise(names)]
    with pytest.raises(ConfigError, match="line 2: aliases"):
        load_yaml("\n".join(["a: &a x", *lines]), "x.yaml")


def test_no_error_shows_the_text_around_a_mistake_and_the_caller_says_what_is_raised():
    assert load_yaml(b"", "x.yaml") is None
    with pytest.raises(DataError, match="Fix: ask for another") as caught:
        load_yaml("api_key: sk-planted-0123456789\nb: [", "x.yaml", error=DataError, remedy="ask for another")
    assert "planted" not in str(caught.value)
