"""Terms that a project's vocabulary lacks: named when they enter, and added on request."""

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from barista_bench.annotate.decisions import Decisions
from barista_bench.annotate.exporting import export_project
from barista_bench.annotate.project import Project, VideoFiles
from barista_bench.annotate.records import LayerAttribute, LayerRelation, Layers
from barista_bench.annotate.vocabulary import Term, add_names
from barista_bench.cli.commands import app
from barista_bench.errors import ConfigError
from barista_bench.scene_graph.domain import load_domain
from tests.annotate.projects import VIDEO, propagated

LEMON = Term("type", "lemon: yellow", True)


def test_add_names_adds_values_of_attributes_and_names_the_other_terms(
    video: VideoFiles, project: Project, tmp_path: Path
) -> None:
    propagated(video)
    names = list(video.accepted().objects)[:2]
    attribute = LayerAttribute(object=names[0], type=LEMON.type, value=LEMON.value, ranges=[(0, 9)])
    relation = LayerRelation(source=names[0], target=names[1], type="position", value="astride", ranges=[(0, 9)])
    layers = Layers(attributes=[attribute], relations=[relation])
    decisions = tmp_path / "decisions.json"
    decisions.write_bytes(msgspec.json.encode(Decisions(video=VIDEO, layers=layers, by="ada")))
    command = ["annotate", "accept", str(project.folder), "--from", str(decisions)]
    told = CliRunner().invoke(app, command)
    assert "attributes.type: lemon: yellow" in told.stderr
    assert "--add-names" in told.stderr
    told = CliRunner().invoke(app, [*command, "--add-names"])
    assert told.exit_code == 0
    assert "position: astride" in told.stderr
    assert "lemon" not in told.stderr
    assert export_project(project.folder, tmp_path / "out").videos[VIDEO].left_out == ["position: astride"]


def test_added_names_exclude_each_other_and_change_nothing_else_in_the_file(project: Project) -> None:
    path = project.folder / "vocabulary.yaml"
    before = path.read_text(encoding="utf-8").splitlines()
    unknown_type = Term("price", "high", True)
    added = add_names(path, [LEMON, Term("type", "grater", True), unknown_type])
    assert unknown_type not in added
    after = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in after if line in before] == before
    assert len(after) == len(before) + 1
    assert load_domain(path).relation_of("type", "grater", LEMON.value) == "exclusive"


def test_a_file_of_another_layout_is_not_edited(project: Project) -> None:
    path = project.folder / "vocabulary.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "  type:\n    dimensions:\n", "  type:\n    # kinds\n    dimensions:\n"
    )
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"attributes\.type\.dimensions.*lemon"):
        add_names(path, [LEMON])
    assert path.read_text(encoding="utf-8") == text
