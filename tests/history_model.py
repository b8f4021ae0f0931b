"""The runs that the model of a random history knows, and the models that answer in them."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from barista_bench.core.boxes import BoxFormat
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.runs.log.inputs import sample_seed
from tests.made_benchmark import Words

WORDS = ("cup", "tap", "lid")
REPEATS = 2
SAID = ("cup", "Cup", "tap", "Lid", "no idea")
Sample = tuple[str, int]
"""Example and repetition."""
EXAMPLES = {f"words:{number}": word for number, word in enumerate(WORDS)}
OF_SEED = {
    sample_seed(Words(), example, repeat, step): (example, repeat)
    for example in EXAMPLES
    for repeat in range(REPEATS)
    for step in range(2)
}


@dataclass
class Run:
    """The state of a run folder in the model of this test.

    Attributes:
        answers: the finished and undamaged answers in the logs.
        steps: first answers, likewise, of the two that a sample takes.
        lasts: second answers in the log of steps beside their first: the next start takes up the ones with a lost
        sample.
        repeats: of the last start.
        case: the scoring option of the last start.
        metrics: accuracy, by the value of the scoring option, as last scored.
        plain: the value of that option by which `results.json` is.
        data: the place of the dataset, relative to the run folder at the last start, and absolute.
    """

    name: str
    folder: str
    answers: dict[Sample, str] = field(default_factory=dict)
    steps: dict[Sample, str] = field(default_factory=dict)
    lasts: dict[Sample, str] = field(default_factory=dict)
    repeats: int = 0
    case: bool = True
    metrics: dict[bool, float] = field(default_factory=dict)
    plain: bool | None = None
    data: tuple[str, str] = ("", "")

    def accuracy(self, case: bool) -> float | None:
        """As plain Python has it; None where nothing is answered."""
        by_repeat: dict[int, list[bool]] = {}
        for (example, repeat), text in self.answers.items():
            if repeat < self.repeats:
                word = text.strip() if case else text.strip().lower()
                by_repeat.setdefault(repeat, []).append(word == EXAMPLES[example])
        return statistics.fmean(sum(right) / len(right) for right in by_repeat.values()) if by_repeat else None

    @property
    def read_by(self) -> bool:
        """The default of the scoring option."""
        (only, *others) = self.metrics or [self.case]
        return self.case if others or only == self.plain else only

    def note(self, case: bool, metric: float) -> None:
        """Scoring leaves `results.json` to figures by the option of the last start."""
        self.metrics[case] = metric
        self.plain = self.case if self.case in (case, self.plain) else None


class Answering:
    """Answers in two steps, each time with another answer. It refuses an answered question, and dies after `lives`."""

    box_format = BoxFormat()
    batch_size = 2

    def __init__(self, known: Run, serial: Iterator[int], lives: int, failing: int) -> None:
        self.identity = ModelIdentity(known.name)
        self.known, self.serial, self.lives, self.failing = known, serial, lives, failing
        self.failed = False

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        given: list[tuple[dict[Sample, str], Sample, str]] = []
        answers = [[self._answer(request, OF_SEED[seed], given) for seed in request.seeds] for request in requests]
        for known, sample, text in given:  # a process that dies above has answered nothing
            known[sample] = text
            if known is self.known.answers:
                self.known.lasts[sample] = text
        return answers

    def _answer(
        self, request: Request, sample: Sample, given: list[tuple[dict[Sample, str], Sample, str]]
    ) -> Completion | Failure:
        if self.lives == 0:
            raise KeyboardInterrupt
        self.lives -= 1
        assert sample[0] == request.request_id
        assert sample not in self.known.answers, "what is answered is not asked again"
        number = next(self.serial)
        if self.failing and number % self.failing == 0:
            self.failed = True
            return Failure("the line broke")
        if request.images:
            assert sample not in self.known.steps, "a first answer is not asked for again"
            text, known = f"seen {number}", self.known.steps
        else:
            assert f"You said: {self.known.steps[sample]}." in request.prompt.as_text()
            text, known = SAID[number % len(SAID)] + " " * number, self.known.answers
        given.append((known, sample, text))
        return Completion(text)
