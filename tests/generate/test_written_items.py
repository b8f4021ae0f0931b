"""Items that a model writes about tracked objects: refusals, and items that stay unverified until people accept
them."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from barista_bench.annotate.exporting import export_project
from barista_bench.benchmarks.egocot import release as egocot_release
from barista_bench.benchmarks.tog_bench import release as tog_release
from barista_bench.data.folder import build
from barista_bench.data.manifest import read_manifest
from barista_bench.errors import ConfigError, DataError
from barista_bench.generate.review import read_review, review_bytes
from barista_bench.hub.publishing import check_publication
from barista_bench.models import Completion, Failure, Request
from barista_bench.scene_graph import SceneGraph
from barista_bench.writing.config import WriteConfig
from barista_bench.writing.items import WriteSession, write_items
from tests.annotate.projects import tracked
from tests.judging.conftest import never
from tests.judging.judges import ScriptedJudge, material

RELEASES = ((tog_release, "tog_bench"), (egocot_release, "egocot"))
QUESTION = {
    **{"question": "Where is it?", "answer": "Here.", "wrong": ["There.", "Gone.", "Nowhere."]},
    **{"steps": ["It is seen here."], "frames": [1]},
}


def written(request: Request, _: int = 0) -> Completion:
    """An instruction that names needed or unneeded objects, as asked, or a question about the middle of the video."""
    shown = material(request)
    name, count = shown["needed"], len(shown["times"].split(", "))
    assert len(request.images) == count
    if shown["kind"] in ("explicit", "implicit"):
        what = f"the {name.replace('; ', ' and the ')}" if shown["kind"] == "explicit" else "what serves best"
        return Completion(json.dumps({"instruction": f"Bring me {what}."}))
    frame = 1 if shown["refused"] else count // 2
    return Completion(json.dumps({**QUESTION, "question": f"Where is the {name}?", "frames": [frame]}))


def checked(request: Request, _: int = 0) -> Completion:
    """Doubts that implicit instructions are unique."""
    verdict = {"holds": True, "reason": "seen"}
    unique = {"holds": "serves" not in material(request).get("instruction", ""), "reason": "much serves"}
    return Completion(json.dumps({"visible": verdict, "unique": unique, "feasible": verdict}))


def start(graphs: Path, out: Path, writer: ScriptedJudge | None = None, **settings: object) -> WriteSession:
    config = WriteConfig(model="writer", source=graphs, out=out, **{"per_video": 6, "frames": 4, **settings})
    return write_items(config, writer or ScriptedJudge(written), ScriptedJudge(checked, name="checker"))


@pytest.fixture(scope="module")
def graphs(small_kitchen: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracks of a project: masks accepted on keyframes, carried on by a propagator. It has no layers."""
    folder = tmp_path_factory.mktemp("project")
    export_project(tracked(small_kitchen, folder).project.folder, folder / "graphs")
    return folder / "graphs"


@pytest.fixture(scope="module")
def first(graphs: Path, tmp_path_factory: pytest.TempPathFactory) -> WriteSession:
    return start(graphs, tmp_path_factory.mktemp("written") / "out")


@pytest.fixture
def accepted(first: WriteSession, tmp_path: Path) -> Callable[[str], Path]:
    """A review file in which a person accepts all items."""

    def review(person: str) -> Path:
        rows = read_review(first.folder / "review.jsonl").values()
        judged = (msgspec.structs.replace(row, verdict="accept", reviewer=person) for row in rows)
        (tmp_path / f"{person}.jsonl").write_bytes(review_bytes(judged))
        return tmp_path / f"{person}.jsonl"

    return review


def test_the_releases_are_read_without_errors_and_every_item_is_unverified(first: WriteSession) -> None:
    tog, egocot = (module.open_release(first.folder / name) for module, name in RELEASES)
    names = {*(filed.task.id for filed in tog.tasks), *egocot.items}
    assert len(names) == first.written == first.unverified > 3
    problems = [*tog.problems, *egocot.problems]
    assert {problem.key for problem in problems} == names, problems
    assert all("unverified" in problem.what for problem in problems)
    assert first.refused["not unique, says the checker"] >= 1, "implicit instructions, which the checker doubts"
    assert {filed.task.kind for filed in tog.tasks} == {"explicit"}


def test_tubes_are_the_boxes_of_the_tracks_once_a_second(first: WriteSession, graphs: Path) -> None:
    graph = SceneGraph(graphs)
    for filed in tog_release.open_release(first.folder / "tog_bench").tasks:
        video = graph[filed.task.video]
        for item in filed.task.objects:
            times = [entry.time for entry in item.boxes]
            assert times == sorted({float(int(time)) for time in times})
            for entry in item.boxes:
                x, y, width, height = video.boxes(round(entry.time * video.video.fps))[item.id]
                assert entry.box == pytest.approx((x, y, x + width, y + height))


def test_a_question_has_the_boxes_of_its_object_on_the_frames_that_show_it(first: WriteSession) -> None:
    release = egocot_release.open_release(first.folder / "egocot")
    for item in release.items.values():
        assert item.evidence.objects[0].label in item.question
        assert len(item.evidence.boxes) == len(item.evidence.focus_times) == 1
        assert item.choices[item.answer] == "Here."
        assert release.graph_columns(item.qid)["graph"].object_ids


def test_a_second_start_asks_nothing_and_gives_the_same_bytes(first: WriteSession, graphs: Path) -> None:
    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in first.folder.rglob("*") if path.is_file()}

    before = content()
    again = start(graphs, first.folder, ScriptedJudge(never))
    assert (again.asked, again.written) == (0, first.written)
    assert content() == before
    with pytest.raises(ConfigError, match="another writer"):
        start(graphs, first.folder, ScriptedJudge(written, name="other"))


def test_a_prompt_file_has_the_texts_of_the_writer_and_of_the_checker(graphs: Path, tmp_path: Path) -> None:
    file = tmp_path / "printed.yaml"
    names = {"tog_bench": "Write an instruction.", "checker": "Check it."}
    user = "{images}\nBEGIN {fence}\n{data}\nEND {fence}"
    texts = {name: {"version": 1, "system": system, "user": user} for name, system in names.items()}
    file.write_text(json.dumps({"tasks": texts}))
    systems = set()

    def heard(answer: Callable[[Request], Completion], request: Request) -> Completion:
        systems.add(request.prompt.system)
        return answer(request)

    config = WriteConfig(
        model="w", source=graphs, out=tmp_path / "out", per_video=1, families=("tog_bench",), prompts=file
    )
    write_items(config, *(ScriptedJudge(lambda r, _, a=a: heard(a, r), name=a.__name__) for a in (written, checked)))
    assert systems == {*names.values()}
    with pytest.raises(ConfigError, match=r"tasks\.egocot"):
        start(graphs, tmp_path / "other", families=("egocot",), prompts=file)


def test_two_people_make_items_verified_and_only_then_are_they_published(
    first: WriteSession, graphs: Path, accepted: Callable[[str], Path], tmp_path: Path
) -> None:
    reviews = [accepted("ada")]
    for unverified, files in ((first.written, reviews), (first.written, reviews * 2), (0, [*reviews, accepted("ben")])):
        session = start(graphs, first.folder, ScriptedJudge(never), review=tuple(files))
        assert (session.written, session.unverified) == (first.written, unverified)
        data = tmp_path / f"data{len(list(tmp_path.iterdir()))}"
        build(session.folder / "egocot", data, benchmark="egocot")
        count = len(egocot_release.open_release(session.folder / "egocot").items)
        assert read_manifest(data)["unverified"] == (count if unverified else 0)
        if unverified:
            with pytest.raises(DataError, match="items are unverified"):
                check_publication(data, "org/name")
        else:
            assert check_publication(data, "org/name").repo_type == "dataset"
    start(graphs, first.folder, ScriptedJudge(never))


def test_an_item_that_could_not_be_checked_is_left_out_and_checked_at_the_next_start(
    graphs: Path, tmp_path: Path
) -> None:
    config = WriteConfig(model="writer", source=graphs, out=tmp_path / "out", per_video=1, families=("tog_bench",))
    silent = ScriptedJudge(lambda *_: Failure("down"), name="checker")
    with pytest.raises(DataError, match="no reply"):
        write_items(config, ScriptedJudge(written), silent)
    session = write_items(config, ScriptedJudge(never, name="scripted-judge"), ScriptedJudge(checked, name="checker"))
    assert (session.asked, session.already_done, session.written) == (1, 1, 1)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"instruction": "Do what serves."}, "object not named"),
        ({"instruction": "Bring me everything.", "more": 1}, "not the requested object"),
        ({**QUESTION, "question": "Where."}, "no question"),
        ({**QUESTION, "wrong": ["here", "There.", "Gone."]}, "choices alike"),
        (QUESTION, "object not named"),
    ],
)
def test_an_item_that_does_not_fit_is_left_out_with_the_reason(
    graphs: Path, tmp_path: Path, reply: dict[str, object], reason: str
) -> None:
    family = "tog_bench" if "instruction" in reply else "egocot"
    writer = ScriptedJudge(lambda request, _: Completion(json.dumps(reply)))
    with pytest.raises(DataError, match="no item passes the checks"):
        start(graphs, tmp_path / "out", writer, families=(family,), per_video=1)
    assert reason in json.loads((tmp_path / "out" / "report.json").read_text())["refused"]
