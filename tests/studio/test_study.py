"""People are invited to a study, answer it, and appear beside models."""

import json
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from barista_bench.api import evaluate, load_results
from barista_bench.benchmarks import get_task
from barista_bench.cli import commands as cli
from barista_bench.data.frozen import read_frozen
from barista_bench.errors import ConfigError
from barista_bench.reporting import write_report
from barista_bench.runs.log_reader import LogReader
from barista_bench.runs.score.scoring import score
from barista_bench.studio.participants import ParticipantSessions
from barista_bench.studio.study import AnswerLog, StudyQuestion, public_origin, read_study
from barista_bench.studio.study_scores import studies_of, study_scores
from tests.studio.studying import Participant, answer_body, answer_to, invited, study_at

ITEMS = 6
invoke = CliRunner().invoke


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study"


def questions_of(study: Path, person: str, kind: str) -> list[StudyQuestion]:
    participant = next(each for each in read_study(study).participants if each.name == person)
    return [question for question in participant.questions if question.kind == kind]


def examples(questions: list[StudyQuestion]) -> set[str]:
    return {question.example for question in questions}


def test_a_study_keeps_only_hashes_of_tokens_and_only_its_maker_reads_it(study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", "ben")
    tokens = [link.partition("?token=")[2] for link in links.values()]
    assert len(set(tokens)) == 2
    assert all(len(token) >= 43 for token in tokens)
    text = (study / "study.json").read_text()
    assert not any(token in text for token in tokens)
    assert stat.S_IMODE((study / "study.json").stat().st_mode) == 0o600


def test_people_share_some_questions_and_answer_others_by_themselves(study: Path, asked_data: Path) -> None:
    invited(study, asked_data, "anna", "ben", "cleo", items=5, overlap=2)
    shares = [examples(questions_of(study, name, "item")) for name in ("anna", "ben", "cleo")]
    counts = Counter(example for share in shares for example in share)
    assert sorted(counts.values()) == [1] * 27 + [3] * 6  # of three tasks
    assert all(len(share) == 15 for share in shares)


def test_each_person_has_a_separate_order_that_stays(study: Path, asked_data: Path, tmp_path: Path) -> None:
    for folder in (study, tmp_path / "again"):
        invited(folder, asked_data, "anna", "ben", items=6, overlap=6)
    anna, ben = (people.questions for people in read_study(study).participants)
    assert anna == read_study(tmp_path / "again").participants[0].questions
    assert [q.example for q in anna if q.kind == "item"] != [q.example for q in ben if q.kind == "item"]
    assert examples(questions_of(study, "anna", "item")) == examples(questions_of(study, "ben", "item"))


def test_practice_videos_do_not_appear_in_counted_questions(study: Path, asked_data: Path) -> None:
    invited(study, asked_data, "anna", items=10_000, overlap=10_000)
    for name in ("activity", "grounding", "referring"):
        videos = {
            example.example_id: example.video_id
            for example in read_frozen(asked_data / "frozen" / f"{name}.jsonl", "barista")
        }
        practised = {videos[q.example] for q in questions_of(study, "anna", "practice") if q.task == name}
        counted = {videos[q.example] for q in questions_of(study, "anna", "item") if q.task == name}
        assert len(practised) == 1
        assert counted == set(videos.values()) - practised


def test_each_task_begins_with_practice_and_contains_checks(study: Path, asked_data: Path) -> None:
    invited(study, asked_data, "anna", items=12, overlap=12)
    (anna,) = read_study(study).participants
    for name in ("activity", "grounding", "referring"):
        block = [question for question in anna.questions if question.task == name]
        start = anna.questions.index(block[0])
        assert list(anna.questions[start : start + len(block)]) == block
        kinds = [question.kind for question in block]
        assert kinds[:2] == ["practice", "practice"]
        assert Counter(kinds) == {"practice": 2, "item": 12, "repeat": 2, "attention": 2}
        firsts = {question.example: at for at, question in enumerate(block) if question.kind == "item"}
        repeats = [(at, question.example) for at, question in enumerate(block) if question.kind == "repeat"]
        assert all(at - firsts[example] > 6 for at, example in repeats)


def test_a_person_invited_again_continues_with_a_new_link_and_others_can_join(study: Path, asked_data: Path) -> None:
    first = invited(study, asked_data, "anna", items=4, overlap=2)
    before = read_study(study).participants[0].questions
    sessions = ParticipantSessions(study)
    old = first["anna"].partition("?token=")[2]
    assert sessions.name_of(old) == "anna"
    again = invited(study, asked_data, "anna", "ben", items=4, overlap=2)
    assert sessions.name_of(old) is None
    assert [sessions.name_of(again[name].partition("?token=")[2]) for name in ("anna", "ben")] == ["anna", "ben"]
    anna, ben = read_study(study).participants
    assert anna.questions == before
    own = examples(questions_of(study, "ben", "item")) - examples(questions_of(study, "anna", "item"))
    assert (ben.name, len(own)) == ("ben", 6)


def test_an_invitation_with_other_questions_is_refused(study: Path, asked_data: Path) -> None:
    invited(study, asked_data, "anna")
    with pytest.raises(ConfigError, match=r"study of other questions.*Fix"):
        invited(study, asked_data, "ben", items=5, overlap=5)


@pytest.mark.parametrize("names", [["../x"], ["a/b"], [".a"], [""], [], ["anna", "anna"], ["anna", "Anna"]])
def test_a_name_that_cannot_name_a_folder_or_is_repeated_is_refused(
    study: Path, asked_data: Path, names: list[str]
) -> None:
    with pytest.raises(ConfigError, match="--participants"):
        invited(study, asked_data, *names)
    assert not study.exists()


def test_more_questions_than_there_are_and_unknown_tasks_are_refused(study: Path, asked_data: Path) -> None:
    with pytest.raises(ConfigError, match=r"2 people with 50 questions each, 1 of them shared, need 99.*Fix"):
        invited(study, asked_data, "anna", "ben", items=50, overlap=1)
    with pytest.raises(ConfigError, match=r"no dataset has nonsense.*Fix"):
        invited(study, asked_data, "anna", tasks=["nonsense"])


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://study.example.org", "https://study.example.org"),
        ("https://Study.Example.org:443/", "https://study.example.org"),
        ("https://lab.example.org:8443", "https://lab.example.org:8443"),
    ],
)
def test_the_address_that_people_open_is_written_as_browsers_do(url: str, origin: str) -> None:
    assert public_origin(url) == origin


@pytest.mark.parametrize(
    "url", ["lab", "http://lab", "https://", "https://lab/x", "https://a b", "https://u@lab", "https://lab?x"]
)
def test_an_address_without_tls_or_with_a_path_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="Fix"):
        public_origin(url)


@pytest.mark.full
def test_a_participant_practises_then_answers_and_continues_after_a_restart(study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", items=ITEMS, overlap=ITEMS)
    with study_at(study):
        anna = Participant(links["anna"])
        first = anna.state()
        assert (first["done"], first["total"], first["practice"]) == (0, 3 * (ITEMS + 2), True)
        assert (first["block"]["number"], first["block"]["of"], first["block"]["begun"]) == (1, 2, False)
        assert anna.state() == first
        second = anna.hand_in(first, answer_to(first), 3.25)
        assert second["feedback"] is not None
        assert (second["done"], second["block"]["begun"]) == (0, True)
        third = anna.hand_in(second, answer_to(second))
        assert (third["practice"], third["done"]) == (False, 0)
        fourth = anna.hand_in(third, answer_to(third), 7.5)
        assert (fourth["feedback"], fourth["done"]) == (None, 1)
    with study_at(study):
        anna = Participant(links["anna"])
        assert anna.state()["question"] == fourth["question"]
        last = anna.answer_all()[-1]
    assert (last["done"], last["total"]) == (3 * (ITEMS + 2), 3 * (ITEMS + 2))
    assert "question" not in last

    answers = AnswerLog(study / "anna" / "answers.jsonl").answers
    questions = read_study(study).participants[0].questions
    assert list(answers) == list(range(len(questions)))
    assert [answer.kind for answer in answers.values()] == [question.kind for question in questions]
    assert [answers[at].seconds for at in (0, 2)] == [3.25, 7.5]
    results = [score(study / "anna" / "barista" / name).results for name in ("activity", "grounding", "referring")]
    assert [result.coverage.scored for result in results] == [ITEMS] * 3  # neither practice, nor checks
    with LogReader(study / "anna" / "barista" / answers[2].task) as reader:
        logged = list(reader)
    items = [answer for answer in answers.values() if answer.kind == "item" and answer.task == answers[2].task]
    assert [(record.example_id, record.text) for record in logged] == [(item.example, item.text) for item in items]


def test_the_right_answer_is_shown_after_practice_and_in_no_other_response(study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", tasks=["grounding"], items=3, overlap=3)
    with study_at(study):
        states = Participant(links["anna"]).answer_all()
    shown = [state["feedback"] for state in states[1:]]
    assert [feedback is not None for feedback in shown] == [True, True, *[False] * (len(shown) - 2)]
    assert all(feedback["boxes"] and feedback["rows"] for feedback in shown[:2])


def test_the_page_of_a_participant_names_no_example_no_file_and_no_other_person(study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", "ben")
    with study_at(study):
        states = Participant(links["anna"]).answer_all()
    text = json.dumps([{**state, "images": []} for state in states])
    for hidden in ("ben", str(study), str(asked_data), *examples(list(read_study(study).participants[0].questions))):
        assert not hidden or hidden not in text
    assert not re.search(r"[0-9a-f]{64}", text)


def test_the_same_answer_sent_again_is_kept_once_and_no_question_is_answered_ahead(
    study: Path, asked_data: Path
) -> None:
    links = invited(study, asked_data, "anna")
    with study_at(study):
        anna = Participant(links["anna"])
        first = anna.state()
        second = anna.hand_in(first, answer_to(first))
        again = anna.hand_in(first, answer_to(first))
        assert again["question"] == second["question"]
        status, body, _ = anna.answer("/api/study/answer", answer_body({"question": "0" * 24}, "A"))
        assert (status, "not open to you" in body.decode()) == (400, True)
    assert len(AnswerLog(study / "anna" / "answers.jsonl").answers) == 1


def test_a_question_that_is_skipped_scores_as_no_answer_and_is_counted(study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        anna = Participant(links["anna"])
        asked = anna.state()
        while asked.get("question"):
            asked = anna.hand_in(asked, None, skipped=True)
    results = score(study / "anna" / "barista" / "activity").results
    assert (results.coverage.scored, results.coverage.statuses["refused"]) == (4, 4)
    assert results.metrics[results.primary].mean == 0
    (metrics,) = study_scores(study, load_results(study).runs)
    assert (metrics.skipped, metrics.attention_passed, metrics.attention_asked) == (4, 0, 1)
    assert (metrics.repeats, metrics.repeats_unread, metrics.seconds) == ((), 1, None)


@pytest.mark.full
def test_an_answer_that_a_kill_kept_out_of_its_run_enters_it_later(study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        anna = Participant(links["anna"])
        asked = anna.state()
        for _ in range(4):
            asked = anna.hand_in(asked, answer_to(asked))
    samples = study / "anna" / "barista" / "activity" / "samples.jsonl"
    whole = samples.read_bytes()
    samples.write_bytes(whole[: len(whole) // 2])
    log = study / "anna" / "answers.jsonl"
    log.write_bytes(log.read_bytes() + b'{"log":2,"place":4,"kind":"item"')
    with study_at(study):
        anna = Participant(links["anna"])
        assert anna.state()["question"] == asked["question"]
        anna.hand_in(asked, answer_to(asked))
    assert sorted(AnswerLog(log).answers) == [0, 1, 2, 3, 4]
    items = [answer for answer in AnswerLog(log).answers.values() if answer.kind == "item"]
    assert score(samples.parent).results.coverage.scored == len(items)


def test_a_damaged_line_costs_only_its_question(
    study: Path, asked_data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        Participant(links["anna"]).answer_all()
    log = study / "anna" / "answers.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], lines[1].replace(b"seconds", b"sekunde"), *lines[2:]]))
    assert sorted(AnswerLog(log).answers) == [0, *range(2, len(lines))]
    assert "line 2 is damaged" in caplog.text
    with study_at(study):
        assert Participant(links["anna"]).state()["block"]["number"] == 2


@pytest.mark.full
def test_agreement_and_the_report_put_people_beside_models(study: Path, asked_data: Path, tmp_path: Path) -> None:
    links = invited(study, asked_data, "anna", "ben", "cleo", tasks=["activity", "grounding"])
    with study_at(study):
        Participant(links["anna"]).answer_all()
        ben = Participant(links["ben"])
        asked = ben.state()
        seconds = 0.0
        while asked.get("question"):
            seconds += 1
            wrong = "A" if answer_to(asked) != "A" else "B"  # also where an attention check asks for another
            asked = ben.hand_in(asked, wrong if asked["form"] == "choice" else {"bboxes": []}, seconds)
    evaluate(asked_data, "oracle", task="activity", repetitions=1, out=tmp_path / "oracle")
    shown = invoke(cli.app, ["compare", "agreement", str(study), str(tmp_path / "oracle")])
    assert shown.exit_code == 0, shown.output
    anna, ben, cleo, *pairs = shown.output.splitlines()
    assert anna.startswith("anna: 8 of 8 questions that count, 0 skipped; attention checks passed 2 of 2; agrees with")
    assert "activity 1.000" in anna
    assert "grounding 1.000" in anna
    assert "attention checks passed 0 of 2" in ben
    assert cleo.startswith("cleo: 0 of 8 questions")
    assert "median time none" in cleo
    named = "barista/activity, human:anna and human:ben: same choice"
    assert [line.endswith("4 examples, 4 pairs") for line in pairs if line.startswith(named)] == [True]
    assert sum("human:anna and human:ben and oracle" in line for line in pairs) == 1

    runs = load_results([study, tmp_path / "oracle"]).runs
    report, markdown = write_report(runs, tmp_path / "report")
    rows = [line for line in markdown.read_text().splitlines() if line.startswith("| human:")]
    assert {name for name in ("human:anna", "human:ben") if any(name in row for row in rows)} == {
        "human:anna",
        "human:ben",
    }
    assert "human:anna is incomplete" in report.read_text()
    (metrics, *_) = study_scores(study, runs)
    assert metrics.seconds == 2.0
    assert studies_of([study / "anna" / "barista" / "activity", study]) == [study.resolve()]


def test_agreement_of_only_one_person_gives_their_progress(study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        Participant(links["anna"]).answer_all()
    shown = invoke(cli.app, ["compare", "agreement", str(study)])
    assert (shown.exit_code, "anna: 4 of 4" in shown.output) == (0, True)
    assert "no two runs have a readable answer" in shown.output


def test_a_file_without_a_study_is_named(study: Path) -> None:
    study.mkdir()
    for content in (b"{", b"[]", b'{"version": 2}', msgspec.json.encode({"version": 1, "port": "x"})):
        (study / "study.json").write_bytes(content)
        with pytest.raises(Exception, match=r"study\.json: is not a study.*Fix"):
            read_study(study)


def test_invite_prints_a_link_a_person(study: Path, asked_data: Path) -> None:
    arguments = [
        "studio",
        "invite",
        str(asked_data),
        "--participants",
        "anna, ben",
        "--task",
        "activity",
        "--items",
        "3",
    ]
    shown = invoke(cli.app, [*arguments, "--out", str(study), "--public-url", "https://lab.example.org:8443"])
    assert shown.exit_code == 0, shown.output
    links = [line for line in shown.output.splitlines() if "token=" in line]
    assert [re.sub(r"token=[\w-]{43}$", "", line) for line in links] == [
        f"{name}  https://lab.example.org:8443/?" for name in ("anna", "ben")
    ]


def test_a_task_that_shows_reasons_in_practice_reads_any_answer(asked_data: Path) -> None:
    """A task's explanations also explain a skipped answer."""
    from barista_bench.studio.participants import feedback
    from barista_bench.studio.people import AnswerRoutes
    from barista_bench.studio.workspace import open_workspace

    drawn: list[Any] = AnswerRoutes(open_workspace([asked_data], person="anna", out=asked_data.parent))._questions_of(1)
    for question in drawn:
        shown = feedback(question, None)
        assert shown["rows"], question.task.name
    assert get_task("barista", "activity").choices(next(q.example for q in drawn if q.task.name == "activity"))
