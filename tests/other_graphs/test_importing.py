"""The importer gives every reader: resuming, counting, refusing."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.errors import ConfigError, DataError
from barista_bench.other_graphs import importing
from barista_bench.other_graphs.importing import import_graphs
from barista_bench.other_graphs.pvsg import Pvsg
from barista_bench.scene_graph.release import read_terms
from tests.other_graphs.test_pvsg import video, write

invoke = CliRunner().invoke


def test_a_call_continues_where_another_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = write(tmp_path / "source", video("v1"), video("v2"), video("v3")), tmp_path / "graphs"
    read, asked = Pvsg.read, []

    def broken_off(self: Pvsg, video_id: str) -> importing.ImportedVideo:
        asked.append(video_id)
        if asked == ["v1", "v2"]:
            raise KeyboardInterrupt
        return read(self, video_id)

    monkeypatch.setattr(Pvsg, "read", broken_off)
    with pytest.raises(KeyboardInterrupt):
        import_graphs("pvsg", source, out)
    assert sorted(path.name for path in out.iterdir()) == ["terms.yaml", "v1"]
    report = import_graphs("pvsg", source, out)
    assert (asked, report.videos, report.resumed) == (["v1", "v2", "v2", "v3"], 3, 1)
    assert report.tally.taken["frames"] == 18


def test_a_video_made_from_other_annotations_is_not_taken_for_this_one(tmp_path: Path) -> None:
    import_graphs("pvsg", write(tmp_path / "one", video("v1")), tmp_path / "graphs")
    other = write(tmp_path / "other", video("v1", summary="Another."), video("v2"))
    report = import_graphs("pvsg", other, tmp_path / "graphs")
    assert report.videos == 1
    assert "was imported from other annotations, or by another domain file. Fix: " in report.lost["v1"]


def test_a_video_imported_by_another_domain_file_is_not_taken_for_this_one(tmp_path: Path) -> None:
    source, shipped = write(tmp_path / "source", video("v1"), video("v2")), resources.files("barista_bench.scene_graph")
    domain = tmp_path / "tea.yaml"
    domain.write_text((shipped / "domain.yaml").read_text("utf-8").replace("name: coffee making", "name: tea", 1))
    import_graphs("pvsg", source, tmp_path / "graphs", videos=["v1"])
    report = import_graphs("pvsg", source, tmp_path / "graphs", domain=domain)
    assert (report.videos, report.resumed) == (1, 0)
    assert "by another domain file. Fix: " in report.lost["v1"]


def test_a_missing_place_or_video_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "source", video("v1"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").touch()
    with pytest.raises(ConfigError, match="contains other files"):
        import_graphs("pvsg", source, tmp_path / "full")
    with pytest.raises(ConfigError, match="lies inside"):
        import_graphs("pvsg", source, source / "graphs")
    with pytest.raises(ConfigError, match="has no 'v9'"):
        import_graphs("pvsg", source, tmp_path / "graphs", videos=["v9"])
    with pytest.raises(ConfigError, match="no 'coco'"):
        import_graphs("coco", source, tmp_path / "graphs")
    with pytest.raises(DataError, match="no such folder"):
        import_graphs("pvsg", tmp_path / "nowhere", tmp_path / "graphs")


def test_a_link_out_of_the_dataset_is_not_followed(tmp_path: Path) -> None:
    source = write(tmp_path / "source", video("v1"))
    picture = source / "data" / "vidor" / "frames" / "v1" / "0003.png"
    picture.rename(tmp_path / "secret.png")
    picture.symlink_to(tmp_path / "secret.png")
    with pytest.raises(DataError, match=r"0003\.png"):
        import_graphs("pvsg", source, tmp_path / "graphs")


def test_the_command_reports_taken_and_lost_records(tmp_path: Path) -> None:
    source = write(tmp_path / "source", video("v1"), video("v2", objects=1))
    arguments = ["import-graph", str(source), "--from", "pvsg", "--out", str(tmp_path / "graphs"), "--no-progress"]
    done = invoke(cli.app, arguments)
    assert done.exit_code == 1, "a video was lost"
    assert "1 videos, 0 of them imported before, 1 lost" in done.output
    assert "taken: 17 masks" in done.output
    assert "lost: v2: pvsg.json: 'v2': Expected `array`" in done.output
    terms = read_terms(tmp_path / "graphs")
    assert terms is not None
    assert (terms.title, terms.licence) == ("PVSG", "other")
    assert json.loads((tmp_path / "graphs" / "v1" / "import.json").read_text())["counts"]["taken"]["frames"] == 6
    assert invoke(cli.app, ["validate", str(tmp_path / "graphs"), "--strict", "--no-progress"]).exit_code == 0
