"""Other pictures for the same questions: the set's hash covers its texts, so media are compared by content."""

import io
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import DataError
from tests.conftest import MadeOnce
from tests.hub.conftest import run_of, some_right
from tests.hub.forging import forge_log, other, submit

SETTINGS = {"configs": ["relations"], "sampling": {"frame_step": 20}, "cache": False}


def painted(picture: bytes) -> bytes:
    """The picture with a white corner, as a reference would be painted on it."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.paste((255, 255, 255), (0, 0, 20, 10))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


PAINTED = 3


def repaint(folder: Path) -> None:
    """Paint on the pictures of the first `PAINTED` questions."""
    left = PAINTED
    for path in sorted((folder / "relations").glob("*.parquet")):
        table = pq.read_table(path)
        lines = table.to_pylist()
        for line in lines[:left]:
            left -= 1
            line["images"] = [{**image, "bytes": painted(image["bytes"])} for image in line["images"]]
        pq.write_table(type(table).from_pylist(lines, schema=table.schema), path)


@pytest.fixture(scope="module")
def painted_run(honest_data: Path, made_once: MadeOnce) -> Path:
    """A run on the published set with something painted on some pictures."""

    def make(out: Path) -> None:
        repaint(Path(shutil.copytree(honest_data, out / "barista")))
        run_of(out / "barista", out / "run", "relations", some_right(honest_data, "relations"))

    return made_once("painted", make) / "run"


@pytest.fixture(scope="module")
def linked_run(small_release: Path, made_once: MadeOnce) -> Path:
    def make(out: Path) -> None:
        build(small_release, out / "barista", frames="linked", **SETTINGS)
        run_of(out / "barista", out / "run", "relations", some_right(out / "barista", "relations"))

    return made_once("linked_run", make) / "run"


def test_a_set_with_other_pictures_has_the_published_hash(painted_run: Path, honest_data: Path) -> None:
    sets = [open_examples(data, "barista", "relations") for data in (painted_run.parent / "barista", honest_data)]
    assert len({one.content_hash for one in sets}) == 1
    assert submit(painted_run).rows, "nothing of the run contradicts another file of it"


def test_a_run_on_other_pictures_is_refused_by_the_published_dataset(painted_run: Path, honest_data: Path) -> None:
    complaint = rf"{PAINTED} of 12 examples were shown other media than in {honest_data}, first '.*Fix"
    with pytest.raises(DataError, match=complaint):
        submit(painted_run, dataset=honest_data)


def test_the_published_pictures_were_made_of_frames_of_the_published_videos(
    linked_run: Path, honest_data: Path
) -> None:
    assert submit(linked_run, dataset=honest_data).rows


def test_frames_of_other_videos_are_refused(small_release: Path, honest_data: Path, tmp_path: Path) -> None:
    """They have the names and annotations of the published ones."""
    release = Path(shutil.copytree(small_release, tmp_path / "release"))
    for video in release.glob("*/video.mp4"):
        video.write_bytes(video.read_bytes() + b"\0\0\0\x08free")
    data = build(release, tmp_path / "barista", frames="linked", **SETTINGS).folder
    run = run_of(data, tmp_path / "run", "relations", some_right(data, "relations"))
    with pytest.raises(DataError, match="12 of 12 examples were shown other media than in"):
        submit(run, dataset=honest_data)


def test_stored_pictures_cannot_be_held_to_links(honest_run: Path, linked_run: Path) -> None:
    with pytest.raises(DataError, match=r"12 of 12 .* than in .*, whose media are frames of videos.*Fix"):
        submit(honest_run, dataset=linked_run.parent / "barista")


def test_compare_and_report_name_other_media(honest_run: Path, painted_run: Path, tmp_path: Path) -> None:
    shutil.copytree(honest_run, tmp_path / "honest")
    shutil.copytree(painted_run, tmp_path / "painted")
    runs = [str(tmp_path / name) for name in ("honest", "painted")]
    complaint = f"was shown other media than garden/fruit-8b (honest) in {PAINTED} of 12 examples, first "
    done = CliRunner().invoke(cli.app, ["compare", *runs])
    assert f"beside: relations: media: garden/fruit-8b (painted) {complaint}" in done.output
    CliRunner().invoke(cli.app, ["report", *runs, "--out", str(tmp_path / "report")])
    text = (tmp_path / "report/report.md").read_text()
    assert "was shown other media than" in text.partition("What to know before comparing")[2]


def test_runs_on_the_same_pictures_are_compared_without_a_word(honest_run: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(honest_run, tmp_path / name)
    done = CliRunner().invoke(cli.app, ["compare", str(tmp_path / "one"), str(tmp_path / "two")])
    assert done.exit_code == 0, done.output
    assert "media" not in done.output


def test_pictures_and_frames_of_videos_are_distinguished(honest_run: Path, linked_run: Path) -> None:
    done = CliRunner().invoke(cli.app, ["compare", str(honest_run), str(linked_run)])
    assert "was shown stored pictures" in done.output


def test_a_line_that_names_other_media_than_it_was_asked_with_is_refused(honest_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(honest_run, tmp_path / "run"))
    forge_log(lambda records: [other(record, media="ab" * 32) for record in records])(run)
    with pytest.raises(DataError, match="line 1: answers another question than the run's"):
        submit(run)
