"""Random histories of a project: builds, requests, kills, damage, scoring and moves in any order lose no finished
answer, ask none twice, and change no figure except by its options and its answers.

A plain model tracks the answers and their figures, and every step compares it with the project.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from barista_bench.api import compare, load_results
from barista_bench.benchmarks import BENCHMARKS
from barista_bench.data.folder import build
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.reporting import write_report
from barista_bench.runs.ask import runner
from barista_bench.runs.log.sample_log import log_files
from barista_bench.runs.merging import compact
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import read_scored, score
from tests.conftest import MadeOnce
from tests.folders import content
from tests.history_model import EXAMPLES, REPEATS, WORDS, Answering, Run, Sample
from tests.made_benchmark import BENCHMARK
from tests.one_run import run
from tests.runs.made_logs import read_folder
from tests.video_samples import render

HISTORIES = 300
LINE_STARTS = re.compile(rb'(?<=\n)|(?=\{"log":)')
"""Also of lines whose predecessor has lost its end."""
SAMPLINGS = ({"frames": 2}, {"frames": 3})
"""The one that runs are of, and another."""


@pytest.fixture(scope="module")
def project(made_once: MadeOnce) -> Iterator[Path]:
    """Three questions about two videos, and the dataset built of them; the made benchmark is one of ours meanwhile.

    Beside it, in `sets`, that dataset and another one.
    """

    def make(folder: Path) -> None:
        root = folder / "project"
        (root / "release/videos").mkdir(parents=True)
        for number in range(2):
            render(root / f"release/videos/{number}.mp4", 4)
        questions = [
            {"id": number, "video": f"videos/{number % 2}.mp4", "split": "test", "words": WORDS, "answer": word}
            for number, word in enumerate(WORDS)
        ]
        (root / "release/questions.json").write_text(json.dumps(questions))
        for number in (1, 0):
            rebuild(root, SAMPLINGS[number])
            shutil.copytree(root / "data/words", folder / f"sets/{number}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BENCHMARKS, "words", BENCHMARK)
        yield made_once("histories", make) / "project"


def rebuild(root: Path, sampling: dict[str, int]) -> None:
    build(
        root / "release", root / "data/words", benchmark="words", frames="linked", cache=False, sampling=dict(sampling)
    )


def evidence(folder: Path) -> dict[str, bytes]:
    """Logs, figures and the run's description; without locks, empty logs and the torn end of a log."""
    contents = {name: text for name, text in content(folder).items() if name.endswith((".json", ".jsonl"))}
    contents |= {
        name: contents[name][: contents[name].rfind(b"\n") + 1]
        for name in contents
        if name.startswith(("samples", "steps"))
    }
    return {name: text for name, text in contents.items() if text}


class History(RuleBasedStateMachine):
    """One project with two run folders."""

    pristine: ClassVar[Path]
    patch: ClassVar[pytest.MonkeyPatch]

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(mkdtemp(prefix="history-", dir=self.pristine.parent))
        self.root = self.home / "project"
        shutil.copytree(self.pristine, self.root)
        self.runs = [Run(name, f"runs/{name}") for name in ("one", "two")]
        self.serial = iter(range(1, 10**9))
        self.moves = iter(range(10**9))
        self.sampling = 0

    def teardown(self) -> None:
        shutil.rmtree(self.home)

    def folder(self, known: Run) -> Path:
        return self.root / known.folder

    def started(self) -> list[Run]:
        return [known for known in self.runs if known.repeats]

    @initialize(repeats=st.integers(1, REPEATS))
    def both_runs_begin(self, repeats: int) -> None:
        self._start(self.runs[0], repeats, case=True, lives=-1, failing=0)
        self._start(self.runs[1], repeats, case=True, lives=5, failing=0)

    @rule(
        at=st.integers(0, 1),
        repeats=st.integers(1, REPEATS),
        case=st.sampled_from([True, True, False]),
        lives=st.sampled_from([-1, -1, 0, 1, 3, 4, 6, 9]),
        failing=st.sampled_from([0, 0, 2, 5]),
        world=st.sampled_from([1, 1, 2]),
    )
    def start(self, at: int, repeats: int, case: bool, lives: int, failing: int, world: int) -> None:
        for rank in range(world):
            with self._process(rank, world):
                self._start(self.runs[at], repeats, case, lives, failing, alone=world == 1)

    @contextmanager
    def _process(self, rank: int, world: int) -> Iterator[None]:
        with self.patch.context() as patch:
            if world > 1:
                patch.setenv("RANK", str(rank))
                patch.setenv("WORLD_SIZE", str(world))
            yield

    def _start(self, known: Run, repeats: int, case: bool, lives: int, failing: int, alone: bool = True) -> None:
        model = Answering(known, self.serial, lives, failing)
        if self.sampling and known.repeats:  # another set lies there now
            self._refused(known, lambda: self._run(known, model, repeats, case), ConfigError)
            return
        if self.sampling:
            return  # a run of the other set: another history
        known.repeats, known.case = repeats, case
        known.data = (os.path.relpath(self.root / "data/words", self.folder(known)), str(self.root / "data/words"))
        for sample, text in known.lasts.items():
            if sample[1] < repeats:
                known.answers.setdefault(sample, text)
        try:
            self._run(known, model, repeats, case)
        except KeyboardInterrupt:
            assert model.lives == 0
        else:
            wanted = {(example, repeat) for example in EXAMPLES for repeat in range(repeats)}
            assert model.failed or not alone or wanted <= known.answers.keys()

    def _run(self, known: Run, model: Answering, repeats: int, case: bool, **others: object) -> None:
        with self.patch.context() as patch:
            patch.setattr(runner, "load_model", lambda *_: model)
            about = {
                "benchmark": "words",
                "task": "choose",
                "repetitions": repeats,
                "option": f"case={str(case).lower()}",
            }
            run(self.root / "data/words", self.folder(known), **{**about, **others})

    def _refused(self, known: Run, command: Callable[[], object], error: type[BaristaError]) -> None:
        before = evidence(self.folder(known))
        with pytest.raises(error, match="Fix"):
            command()
        assert evidence(self.folder(known)) == before

    @rule(
        at=st.integers(0, 1),
        others=st.sampled_from([{"temperature": 0.5}, {"limit": 2}, {"option": "steps=1"}, {"split": "test"}]),
    )
    def start_of_another_run(self, at: int, others: dict[str, object]) -> None:
        known = self.runs[at]
        if known.repeats:
            model = Answering(known, self.serial, 0, 0)
            self._refused(known, lambda: self._run(known, model, known.repeats, known.case, **others), ConfigError)

    @rule(
        at=st.integers(0, 1), position=st.floats(0, 1), at_line_end=st.booleans(), byte=st.none() | st.integers(0, 255)
    )
    def damage_a_log(self, at: int, position: float, at_line_end: bool, byte: int | None) -> None:
        """One byte is overwritten, or all from there on is lost, as after a power cut."""
        known = self.runs[at]
        logs = sorted(path for kind in ("samples", "steps") for path in self.folder(known).glob(f"{kind}*.jsonl"))
        logs = [path for path in logs if path.stat().st_size]
        if not logs:
            return
        path = logs[min(int(position * len(logs)), len(logs) - 1)]
        whole = path.read_bytes()
        where = int(position * len(logs) % 1 * len(whole))
        where = max(whole.find(b"\n", where), where) if at_line_end else where
        if byte is not None and whole[where] == byte:
            return
        path.write_bytes(whole[:where] if byte is None else whole[:where] + bytes([byte]) + whole[where + 1 :])
        start = 0
        for line in LINE_STARTS.split(whole):
            if start + len(line) > where and (start <= where or byte is None):
                if path.name.startswith("steps"):
                    self._forget(known.lasts, line)
                    self._forget(known.steps, line)
                    known.lasts = {sample: text for sample, text in known.lasts.items() if sample in known.steps}
                else:
                    self._forget(known.answers, line)
            start += len(line)

    @staticmethod
    def _forget(known: dict[Sample, str], line: bytes) -> None:
        """What only a line says that is whole so far."""
        try:
            record = json.loads(line)
        except ValueError:
            return
        sample = (record.get("example_id"), record.get("repetition"))
        if sample in known and known[sample] == record["text"]:
            del known[sample]

    def _is_found(self, known: Run) -> bool:
        """Whether the dataset lies where a run folder's paths lead, relative or absolute."""
        relative, absolute = known.data
        return any(os.path.exists(path) for path in (self.folder(known) / relative, absolute))

    def _whereabouts(self, known: Run) -> Path | None:
        return None if self._is_found(known) else self.root / "data/words"

    @rule(at=st.integers(0, 1), case=st.sampled_from([None, True, False]))
    def score_by_an_option(self, at: int, case: bool | None) -> None:
        known, options = self.runs[at], {} if case is None else {"case": case}
        if not known.repeats:
            return
        chosen = known.case if case is None else case
        expected = known.accuracy(chosen)
        folder, data = self.folder(known), self._whereabouts(known)
        if self.sampling or expected is None:
            self._refused(known, lambda: score(folder, data=data, options=options), DataError)
            return
        if data is not None:
            self._refused(known, lambda: score(folder, options=options), DataError)
        scored = score(folder, data=data, options=options)
        known.note(chosen, expected)
        assert scored.results.metrics["accuracy"].mean == pytest.approx(expected)
        assert scored.results.coverage.expected == len(EXAMPLES) * known.repeats

    @rule(pages=st.sampled_from([False, False, False, False, True]))
    def read(self, pages: bool) -> None:
        """Comparing, loading and reporting say what scoring would, and write nothing."""
        before = content(self.root)
        readable = []
        for known in self.started():
            expected, data = known.accuracy(known.read_by), self._whereabouts(known)
            if self.sampling or expected is None:
                with pytest.raises(DataError, match="Fix"):
                    read_scored(self.folder(known), data=data)
                continue
            scored = read_scored(self.folder(known), data=data)
            assert scored.results.options["case"] == known.read_by
            assert scored.results.metrics["accuracy"].mean == pytest.approx(expected)
            if data is None:
                readable.append((known, scored))
        if len(readable) == 2:
            self._compare(*(known for known, _ in readable))
        if pages and readable:
            report = self.home / f"report-{next(self.serial)}"
            write_report([scored for _, scored in readable], report, compare=False)
            assert "accuracy" in (report / "report.md").read_text()
        assert content(self.root) == before

    def _compare(self, first: Run, second: Run) -> None:
        folders = [self.folder(first), self.folder(second)]
        shared = {s for s in first.answers.keys() & second.answers.keys() if s[1] < min(first.repeats, second.repeats)}
        if first.read_by == second.read_by and shared:
            assert set(compare(folders, permutations=20).shape) != {0}
        else:
            with pytest.raises(DataError, match="Fix"):
                compare(folders, permutations=20)
        means = load_results(folders, options={"case": False}).metrics["mean"]
        assert list(means) == pytest.approx([known.accuracy(False) for known in (first, second)])

    @rule(at=st.integers(0, 1))
    def tidy(self, at: int) -> None:
        known = self.runs[at]
        if log_files(self.folder(known)):
            compact(self.folder(known))
            assert len(log_files(self.folder(known))) == 1

    @rule(at=st.integers(0, 1), deep=st.booleans())
    def move_a_run(self, at: int, deep: bool) -> None:
        known = self.runs[at]
        if known.repeats:
            before, folder = self.folder(known), f"archive{next(self.moves)}/{'deep/er/' * deep}{known.name}"
            (self.root / folder).parent.mkdir(parents=True)
            known.folder = folder
            before.rename(self.folder(known))

    @rule()
    def move_all(self) -> None:
        self.root = self.root.rename(self.home / f"project{next(self.moves)}")

    @rule(sampling=st.sampled_from([0, 0, 1]), copied=st.sampled_from([True, True, True, True, False]))
    def build_again(self, sampling: int, copied: bool) -> None:
        """Into the same folder: runs continue with the same set, and refuse another. A copy has the same bytes."""
        if copied:
            shutil.rmtree(self.root / "data/words")
            shutil.copytree(self.pristine.parent / f"sets/{sampling}", self.root / "data/words")
        else:
            rebuild(self.root, SAMPLINGS[sampling])
        self.sampling = sampling

    @invariant()
    def no_finished_answer_is_lost(self) -> None:
        for known in self.started():
            records = [record for record in read_folder(self.folder(known)) if record.is_finished]
            assert {(record.example_id, record.repetition): record.text for record in records} == known.answers

    @invariant()
    def no_metric_changes_but_by_scoring_and_by_its_options(self) -> None:
        for known in self.started():
            kept = [read_results(path) for path in self.folder(known).glob("results*.json")]
            assert {
                bool(results.options["case"]): results.metrics["accuracy"].mean for results in kept
            } == pytest.approx(known.metrics)
            assert len({results.comparability.key for results in kept}) == len(kept) == len(known.metrics)


@pytest.mark.full
def test_no_history_loses_an_answer_or_changes_a_metric(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(History, "pristine", project, raising=False)
    monkeypatch.setattr(History, "patch", monkeypatch, raising=False)
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=HISTORIES,
            phases=[Phase.generate],
            stateful_step_count=10,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
