from pathlib import Path

import pytest
from pydantic import Field

from barista_bench.errors import DataError
from barista_bench.files import reading
from barista_bench.files.reading import Strict, read_model


class Cup(Strict):
    volume: float
    beans: dict[str, int] = Field(default_factory=dict)


def read(path: Path) -> Cup:
    return read_model(path, Cup, what="no cup", remedy="pour again")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('{"volume": "SECRET"}', "volume: Input should be a valid number"),
        ('{"volume": NaN}', "volume: Input should be a finite number"),
        ('{"volume": 1, "beans": {"arabica": 1.5}}', r"beans\.arabica: Input should be a valid integer"),
        ('{"volume": 1, "colour": "SECRET"}', "colour: Extra inputs are not permitted"),
        ('{"volume": 1, "%s": 1}' % ("x" * 10_000), "x{200}: Extra inputs"),
        ("[]", "the whole: Input should be an object"),
        ("", "the whole: Invalid JSON"),
        ("[" * 100_000, "the whole: Invalid JSON"),
        ("\xff", "the whole: Invalid JSON"),
    ],
)
def test_the_first_thing_that_is_wrong_is_named_and_not_quoted(content: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "cup.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=rf"cup\.json: {named}.*\. Fix: pour again") as error:
        read(path)
    assert "SECRET" not in str(error.value)


def test_a_file_is_read_as_its_schema_or_refused_where_missing_or_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cup.json"
    with pytest.raises(DataError, match=r"cup\.json: no cup .*No such file.*Fix: pour again"):
        read(path)
    path.write_text('{"volume": 0.2, "beans": {"arabica": 30}}')
    assert read(path) == Cup(volume=0.2, beans={"arabica": 30})
    monkeypatch.setattr(reading, "MAX_JSON", 10)
    with pytest.raises(DataError, match=r"cup\.json: no cup .*10 bytes.*Fix: pour again"):
        read(path)
