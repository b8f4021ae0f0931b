"""The end of an answer, and thoughts without an answer."""

import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import AutoTokenizer  # noqa: E402

from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.models.answers import AnswerReader, GeneratedRow, TokenScores  # noqa: E402
from barista_bench.models.base import GenerationConfig  # noqa: E402
from barista_bench.models.local.decoding import StopTexts, ThinkingBudget, Thoughts  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from tests.models.transformers_kit import GREEDY, SAMPLED, alike, many_requests, request_of, written_tokens  # noqa: E402

TAGS = ("<think>", "</think>")


@pytest.fixture(scope="module")
def thinking_folder(folders, tmp_path_factory):
    """A checkpoint whose template opens the thinking."""
    folder = Path(shutil.copytree(folders["gemma3"], tmp_path_factory.mktemp("answers") / "thinking"))
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text().replace("assistant\n", "assistant\n<think>\n{# </think> #}"))
    return folder


@pytest.fixture(scope="module")
def thinker(thinking_folder):
    return TransformersModel.load(str(thinking_folder))


@pytest.fixture
def reader(model):
    return AnswerReader(model._engine.encoder.tokenizer, TAGS, frozenset({1}), frozenset({0, 2}))


def tokens_of(reader, text: str) -> list[int]:
    return reader.tokenizer(text, add_special_tokens=False)["input_ids"]


def generated(
    reader, text: str, *, ended: bool = True, opened: bool = False, stopped: int | None = None
) -> GeneratedRow:
    tokens = tokens_of(reader, text) + ([1, 0, 0] if ended else [])
    scores = TokenScores([-float(n) for n in range(len(tokens))], [[t] for t in tokens], [[-9.0]] * len(tokens))
    return GeneratedRow(tokens, opened, stopped, prompt_tokens=9, cached=0, rows=1, scores=scores)


def test_the_end_token_ends_an_answer(model, monkeypatch):
    """A token of one answer, absent from its neighbour, is declared to end answers: the neighbour continues."""
    requests = [request_of(0, 1, "cup"), request_of(1, 2, "jug and kettle")]
    written = written_tokens(monkeypatch)
    [[full], neighbour] = model.generate(requests, GREEDY)
    longest_first = written[:2]
    of_first, of_second = longest_first[1], longest_first[0]
    end = next(token for token in of_first[3:] if token not in of_second)
    monkeypatch.setattr(model._engine, "reader", replace(model._engine.reader, end_ids=frozenset({end})))
    [[ended], beside] = model.generate(requests, GREEDY)
    assert (ended.finish_reason, ended.output_tokens) == ("stop", of_first.index(end) + 1)
    assert full.text.startswith(ended.text)
    assert beside == neighbour


def test_special_tokens_without_a_role_are_no_text_of_an_answer(any_model):
    """Chat templates write such marks between turns; `all_special_ids` does not know them."""
    reader = any_model._engine.reader
    row = generated(reader, "the cup<|im_end|> and<|im_start|> the jug")
    assert "<|im_end|>" in reader.tokenizer.decode(row.tokens)
    assert not set(tokens_of(reader, "<|im_start|><|im_end|>")) & set(reader.tokenizer.all_special_ids)
    answer = reader.read(row, ())
    assert answer.text == "the cup and the jug" == "".join(token.token for token in answer.logprobs)


def test_thoughts_between_special_tokens_of_another_model_are_not_part_of_the_answer(model):
    tokenizer = deepcopy(model._engine.encoder.tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]", "[INST]"]})
    reader = AnswerReader.of(tokenizer, TAGS, model._engine.model.generation_config)
    answer = reader.read(generated(reader, "[THINK]the cup[/THINK]jug[INST]"), ())
    assert (answer.reasoning, answer.text, answer.finish_reason) == ("the cup", "jug", "stop")
    assert answer.thinking_tokens < answer.output_tokens
    cut_off = reader.read(generated(reader, "[THINK]the cup", ended=False), ())
    assert (cut_off.text, cut_off.finish_reason) == ("", "thinking")


def test_tags_that_the_vocabulary_knows_are_the_models_own(copy):
    tokenizer = AutoTokenizer.from_pretrained(copy)
    tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]"]})
    tokenizer.save_pretrained(copy)
    encoder = TransformersModel.load(str(copy))._engine.encoder
    assert (encoder.tags, encoder.thinks) == (("[THINK]", "[/THINK]"), True)


def test_no_answer_holds_a_mark_of_the_chat_template_that_the_model_wrote(model, monkeypatch):
    rows = written_tokens(monkeypatch)
    answers = model.generate(many_requests(seeds=range(16)), GenerationConfig(temperature=50.0, max_new_tokens=24))
    [mark] = tokens_of(model._engine.reader, "<|im_end|>")
    assert any(mark in row for row in rows)
    assert not any("<|im_end|>" in completion.text for each in answers for completion in each)


def test_stop_texts_end_the_answer_and_are_no_part_of_it(model):
    requests = [request_of(0, 1, "cup"), request_of(1, 2, "jug and kettle")]
    full = model.generate(requests, GREEDY)
    written = full[0][0].text
    stop = next(written[n : n + 2] for n in range(4, len(written)) if written[n : n + 2] not in full[1][0].text)
    answers = model.generate(requests, replace(GREEDY, stop=(stop, "never written")))
    assert answers[0][0].text == full[0][0].text[: full[0][0].text.index(stop)]
    assert answers[0][0].finish_reason == "stop"
    assert answers[0][0].output_tokens < GREEDY.max_new_tokens
    assert answers[1] == full[1]


def test_a_stop_text_at_the_end_of_the_prompt_does_not_stop_the_answer(model):
    request = request_of(0, 1, "cup")
    [[full]] = model.generate([request], GREEDY)
    first = full.text[0]
    [[answer]] = model.generate([request], replace(GREEDY, stop=("assistant\n" + first,)))
    assert answer == full


@pytest.mark.full
@pytest.mark.parametrize("config", [GREEDY, SAMPLED])
def test_stops_and_budgets_give_the_same_answers_at_every_batch_size(thinker, config):
    letters = ("a",)
    config, answers = replace(config, thinking_budget=6, stop=letters, max_new_tokens=24), {}
    for size in (1, 2, 8):
        thinker.batch_size = size
        answers[size] = alike(thinker.generate(many_requests(seeds=(1, 2)), config))
    assert answers[1] == answers[2] == answers[8]
    given = [completion for each in answers[8] for completion in each]
    assert not any(letter in completion.text for completion in given for letter in letters)
    assert {completion.finish_reason for completion in given} == {"stop", "length"}
    assert any(
        letter in completion.reasoning for completion in given for letter in letters
    )  # a stop text ends only answers


def test_thinking_closes_when_its_budget_is_spent(thinker, monkeypatch):
    rows, closing = written_tokens(monkeypatch), thinker._engine.encoder.tokenizer("</think>\n")["input_ids"]
    requests = many_requests()
    free = alike(thinker.generate(requests, GREEDY))
    assert {(completion.text, completion.finish_reason) for [completion] in free} == {("", "thinking")}
    assert all(completion.reasoning and completion.thinking_tokens == completion.output_tokens for [completion] in free)
    longest_first = rows[:8]
    for budget in (0, 1, 6):
        rows.clear()
        answers = thinker.generate(requests, replace(GREEDY, max_new_tokens=24, thinking_budget=budget))
        for row, unlimited in zip(rows[:8], longest_first, strict=True):
            assert row[:budget] == unlimited[:budget]
            assert row[budget : budget + len(closing)] == closing
            assert "</think>" not in thinker._engine.encoder.tokenizer.decode(row[budget + len(closing) :])
        assert all(completion.text for [completion] in answers)
        assert {completion.thinking_tokens for [completion] in answers} == {budget + len(closing) - 1}  # no line break


def test_a_model_takes_a_thinking_budget_only_with_think_tags(folders, model):
    with pytest.raises(ModelError, match=r"thinking_budget is set, but neither .*Fix: "):
        model.generate([request_of(0, 1, "cup")], replace(GREEDY, thinking_budget=5))
    model = TransformersModel.load(str(folders["gemma3"]), think_tags=("[T]", "[/T]"))
    assert model.identity.settings["think_tags"] == "[T] [/T]"
    [[answer]] = model.generate([request_of(0, 1, "cup")], replace(GREEDY, thinking_budget=5))
    assert (answer.reasoning, answer.finish_reason) == (None, "length")


def test_reasoning_is_kept_apart(folders):
    """Characters that the model happens to write, declared as its tags."""
    request = request_of(0, 1, "cup")
    plain = TransformersModel.load(str(folders["gemma3"]))
    [[full]] = plain.generate([request], GREEDY)
    opening, closing = full.text[1], full.text[8]
    [[answer]] = TransformersModel.load(str(folders["gemma3"]), think_tags=(opening, closing)).generate(
        [request], GREEDY
    )
    assert answer.reasoning
    assert closing not in answer.text
    assert full.text.endswith(answer.text)


@pytest.mark.parametrize(
    ("text", "opened", "ended", "expected"),
    [
        ("left", False, True, ("left", None, "stop")),
        ("left", False, False, ("left", None, "length")),
        ("<think>cup</think>\n\nleft", False, True, ("left", "cup", "stop")),
        ("cup</think>left", True, True, ("left", "cup", "stop")),
        ("<think>cup", False, True, ("", "cup", "thinking")),
        ("cup", True, True, ("", "cup", "thinking")),
        ("<think>cup</think>left<think>jug", False, True, ("", "cupleftjug", "thinking")),
        ("<think>cup</think>", False, True, ("", "cup", "stop")),
    ],
)
def test_thinking_that_never_closed_is_a_truncation_even_after_an_end_token(reader, text, opened, ended, expected):
    answer = reader.read(generated(reader, text, ended=ended, opened=opened), ())
    assert (answer.text, answer.reasoning, answer.finish_reason) == expected
    assert bool(answer.logprobs) == bool(answer.text)


@pytest.mark.parametrize("text", ["the cup and the jug", "<think>the milk</think>\n\nthe cup é jug", "a</think> cup"])
def test_log_probabilities_are_only_of_the_tokens_of_the_answer(reader, text):
    row = generated(reader, text)
    answer = reader.read(row, ())
    assert "".join(token.token for token in answer.logprobs).strip() == answer.text or "\ufffd" in str(answer.logprobs)
    steps = [-int(token.logprob) for token in answer.logprobs]
    assert steps == list(range(steps[0], len(tokens_of(reader, text))))
    assert all(token.top[0][1] == token.logprob for token in answer.logprobs)


def test_log_probabilities_end_where_a_stop_text_begins(reader):
    answer = reader.read(generated(reader, "the cup; the jug"), (";",))
    assert (answer.text, answer.finish_reason) == ("the cup", "stop")
    assert "".join(token.token for token in answer.logprobs) == "the cup"


def steps(tokenizer, *rows: str) -> torch.Tensor:
    made = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in rows]
    longest = max(map(len, made))
    return torch.tensor([tokens + [0] * (longest - len(tokens)) for tokens in made])


def test_thoughts_are_followed_row_by_row_and_token_by_token(model):
    tokenizer = model._engine.encoder.tokenizer
    rows = ["<think>the cup</think>left of", "left of the jug and the cup", "the cup</think>right <think> milk"]
    tokens = steps(tokenizer, *rows)
    prompt = torch.full((3, 4), 5)
    at_once, one_by_one = (Thoughts(tokenizer, TAGS, 4, [False, False, True]) for _ in range(2))
    for end in range(tokens.shape[1] + 1):
        one_by_one.read(torch.cat([prompt, tokens[:, :end]], dim=1))
    at_once.read(torch.cat([prompt, tokens], dim=1))
    for thoughts in (at_once, one_by_one):
        assert thoughts.thinking == [False, False, True]
        assert [thoughts.has_thought(row) for row in range(3)] == [True, False, False]
        answer = tokens[0, thoughts.answers_from[0] :]
        assert tokenizer.decode(answer, skip_special_tokens=True) == "left of"
    assert at_once.thinking_tokens == one_by_one.thinking_tokens


def test_a_budget_forces_the_tag_once_and_changes_no_other_rows(model):
    tokenizer = model._engine.encoder.tokenizer
    thoughts = Thoughts(tokenizer, TAGS, 0, [True, False])
    closing = tokenizer("</think>\n", add_special_tokens=False)["input_ids"]
    budget = ThinkingBudget(thoughts, 2, closing)
    word = tokenizer("cup", add_special_tokens=False)["input_ids"][0]
    sequences, written = torch.empty((2, 0), dtype=torch.long), []
    for _ in range(4 + len(closing)):
        scores = torch.zeros((2, len(tokenizer)))
        scores[:, word] = 1.0
        chosen = budget(sequences, scores).argmax(-1)
        sequences = torch.cat([sequences, chosen[:, None]], dim=1)
        written.append(chosen.tolist())
    first, second = zip(*written, strict=True)
    assert list(first) == [word, word, *closing, word, word]
    assert set(second) == {word}


def test_a_stop_text_of_white_space_does_not_stop_between_thought_and_answer(model):
    tokenizer = model._engine.encoder.tokenizer
    tokens = steps(tokenizer, "the\ncup</think>\n\nleft\nright", "left\nright")
    thoughts = Thoughts(tokenizer, TAGS, 0, [True, False])
    stop = StopTexts(tokenizer, ("\n",), 0, thoughts)
    for end in range(1, tokens.shape[1] + 1):
        stop(tokens[:, :end], None)
    ended = [tokenizer.decode(row[:length]) for row, length in zip(tokens, stop.lengths, strict=True)]
    assert ended == ["the\ncup</think>\n\nleft\n", "left\n"]
