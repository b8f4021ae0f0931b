"""docs/graph_format.md: its file is valid, its converter runs, its schema is the reader's schema."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest

from barista_bench.scene_graph import SceneGraph, validate
from barista_bench.scene_graph.release import ReleaseFile
from barista_bench.scene_graph.shown_format import graph_schema, schema_path
from tests.releases import document, write_release, write_video

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "graph_format.md").read_text(encoding="utf-8")
(MINIMAL,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
(CONVERTER,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_minimal_file_is_valid_and_follows_the_schema(tmp_path: Path) -> None:
    write_release(tmp_path, content=json.loads(MINIMAL))
    assert validate(tmp_path).problems == ()
    (graph,) = SceneGraph(tmp_path)
    (held,) = graph.relations()
    assert (held.source.category, held.value, held.start, held.end) == ("left hand", "holds", 10, 30)
    for content in (json.loads(MINIMAL), document()):
        jsonschema.validate(content, graph_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(MINIMAL.replace("image_id_start", "start")), graph_schema())


def test_the_shipped_schema_equals_the_schema_of_the_records() -> None:
    assert json.loads(schema_path().read_bytes()) == graph_schema(), "json.dump(graph_schema(), file, indent=1)"


def test_the_page_names_every_key() -> None:
    keys = {name for record in msgspec.json.schema(ReleaseFile)["$defs"].values() for name in record["properties"]}
    assert not [key for key in keys if f"`{key}`" not in PAGE and f'"{key}"' not in PAGE]


def test_the_converter_makes_a_valid_graph(tmp_path: Path) -> None:
    source = tmp_path / "annotations"
    source.mkdir()
    write_video(source / "v1.mp4")
    (source / "boxes.csv").write_text(
        "video,frame,object,category,x,y,width,height\nv1,3,1,coffee cup,50,30,20,20\nv1,3,2,left hand,44,40,10,16\n"
    )
    (source / "relations.csv").write_text(
        "video,source,target,type,value,first,last\nv1,2,1,human_actions,holds,3,3\n", encoding="utf-8-sig"
    )
    assert len(CONVERTER.splitlines()) <= 50
    command = [sys.executable, "-c", CONVERTER, str(source), str(tmp_path / "graphs")]
    subprocess.run(command, check=True)
    assert validate(tmp_path / "graphs").problems == ()
    (graph,) = SceneGraph(tmp_path / "graphs")
    assert [(row.value, row.start, row.end) for row in graph.relations()] == [("holds", 3, 4)]


@pytest.mark.parametrize("place", ["README.md", "docs/your_own_videos.md", "docs/other_graphs.md", "mkdocs.yml"])
def test_the_page_is_found(place: str) -> None:
    assert "graph_format.md" in (ROOT / place).read_text(encoding="utf-8")
