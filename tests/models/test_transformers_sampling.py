"""Samples are drawn from the model's distribution, by only their seed, under the requested settings."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.errors import ConfigError  # noqa: E402
from barista_bench.models.base import GenerationConfig, Request  # noqa: E402
from barista_bench.models.local.decoding import SeededGumbel, sampling_processors, split_mix  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from tests.models.conftest import fresh  # noqa: E402
from tests.models.transformers_kit import (  # noqa: E402
    GREEDY,
    SAMPLED,
    alike,
    change_json,
    mixed_requests,
    request_of,
    texts,
    watch,
    written_tokens,
)

PROBABILITIES = torch.tensor([0.5, 0.3, 0.15, 0.05])


def draw(count: int, scores: torch.Tensor, **settings) -> torch.Tensor:
    """Tokens drawn with seeds 0, 1, ... from scores of shape (vocabulary,)."""
    config = replace(GenerationConfig(temperature=1.0), **settings)
    processors = sampling_processors(config, 1.0, torch.zeros(count, dtype=torch.long), range(count))
    return processors(torch.zeros(count, 1, dtype=torch.long), scores.repeat(count, 1)).argmax(-1)


def chi_square(drawn: torch.Tensor, probabilities: torch.Tensor) -> float:
    expected = probabilities.double() * len(drawn)
    counts = torch.bincount(drawn, minlength=len(probabilities)).double()
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_follow_the_distribution_at_a_temperature(temperature):
    expected = torch.softmax(PROBABILITIES.log() / temperature, dim=0)
    drawn = draw(4000, PROBABILITIES.log(), temperature=temperature)
    assert chi_square(drawn, expected) < 16.3  # 3 degrees of freedom, p = 0.001


def test_steps_of_one_seed_are_independent():
    sampling = SeededGumbel([7])
    scores = PROBABILITIES.log()[None]
    drawn = torch.cat([sampling(None, scores.clone()).argmax(-1) for _ in range(4000)])
    assert chi_square(drawn, PROBABILITIES) < 16.3
    pairs = drawn[:-1] * 4 + drawn[1:]
    assert chi_square(pairs, torch.outer(PROBABILITIES, PROBABILITIES).flatten()) < 37.7  # 15 degrees of freedom


@pytest.mark.parametrize(
    ("settings", "left"), [({"top_p": 0.7}, {0, 1}), ({"top_k": 3}, {0, 1, 2}), ({"top_k": 1}, {0})]
)
def test_cuts_leave_unlikely_tokens_out(settings, left):
    assert set(draw(800, PROBABILITIES.log(), **settings).tolist()) == left


def test_tokens_that_are_masked_are_never_drawn():
    scores = torch.full((50,), -torch.inf)
    scores[[0, 17, 49]] = 0.0
    assert set(draw(500, scores).tolist()) == {0, 17, 49}
    scores[[0, 49]] = -torch.inf
    assert set(draw(500, scores).tolist()) == {17}


def test_the_hash_is_split_mix():
    """Published values of the generator seeded with 1234567."""
    states = 1234567 + torch.arange(1, 4) * (0x9E3779B97F4A7C15 - 2**64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [value % 2**64 for value in split_mix(states).tolist()] == expected


@pytest.mark.full
def test_rounding_of_the_scores_hardly_ever_changes_a_sample():
    """Batches round differently, in bfloat16 by about a hundredth. A lookup in the cumulative distribution suffers."""
    scores = 2 * torch.randn(20_000, generator=torch.Generator().manual_seed(1))
    rounded = scores + 0.01 * torch.randn(20_000, generator=torch.Generator().manual_seed(2))
    changed = int((draw(300, scores) != draw(300, rounded)).sum())
    uniform = torch.rand(300, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    looked_up, again = (
        torch.searchsorted(torch.softmax(row.double(), dim=0).cumsum(0), uniform) for row in (scores, rounded)
    )
    assert changed <= 6
    assert int((looked_up != again).sum()) > 10 * changed


def test_rows_and_seeds_must_agree():
    with pytest.raises(ValueError, match="2 rows of scores for 3 seeds"):
        SeededGumbel([1, 2, 3])(None, torch.zeros(2, 5))


@pytest.mark.full
def test_samples_depend_only_on_their_seed(any_model):
    seeds = [(11, 12, 13), (21,), (31, 32), (41, 42, 43)]
    requests = [Request(r.request_id, r.prompt, r.images, s) for r, s in zip(mixed_requests(), seeds, strict=True)]
    together = alike(any_model.generate(requests, SAMPLED))
    assert alike(any_model.generate(requests[::-1], SAMPLED)) == together[::-1]
    for request, answers in zip(requests, together, strict=True):
        alone = [
            any_model.generate([Request("x", request.prompt, request.images, (seed,))], SAMPLED)[0][0]
            for seed in request.seeds
        ]
        assert alike([alone]) == [answers]
        assert len({answer.text for answer in answers}) == len(request.seeds)


def test_only_several_samples_share_prompts_and_only_where_the_model_can(any_model, monkeypatch):
    calls, requests = [], mixed_requests(seeds=(1, 2, 3))
    watch(monkeypatch, any_model, lambda kwargs: calls.append("custom_generate" in kwargs))
    shared = any_model.generate(requests, SAMPLED)
    any_model.generate(requests, GREEDY)
    any_model.generate(mixed_requests(), SAMPLED)
    monkeypatch.setattr(any_model._engine.model, "_is_stateful", True)
    assert alike(any_model.generate(requests, SAMPLED)) == alike(shared)
    assert calls == [True, False, False, False]


def test_global_random_state_is_untouched(model):
    before = torch.get_rng_state()
    model.generate([request_of(0, 1, "cup", seeds=(1, 2))], SAMPLED)
    assert torch.equal(torch.get_rng_state(), before)


def test_one_candidate_is_greedy_decoding(any_model):
    requests = mixed_requests()
    sampled = any_model.generate(requests, replace(SAMPLED, top_k=1))
    assert texts(sampled) == texts(any_model.generate(requests, GREEDY))


def test_greedy_answers_and_the_penalty_equal_transformers_own_generation(any_model, monkeypatch):
    """Beside `generate` without anything of ours, on one request at a time."""
    rows, config = written_tokens(monkeypatch), replace(GREEDY, max_new_tokens=16)  # long enough to repeat itself
    encoder, plain = any_model._engine.encoder, any_model._engine.model
    for penalty in (1.0, 1.7):
        for request in mixed_requests()[:3]:
            inputs = encoder.encode(request).tensors
            made = plain.generate(
                **inputs,
                max_new_tokens=config.max_new_tokens,
                do_sample=False,
                repetition_penalty=penalty,
                eos_token_id=sorted(any_model._engine.reader.end_ids),
                pad_token_id=encoder.tokenizer.pad_token_id,
            )
            any_model.generate([request], replace(config, repetition_penalty=penalty))
            assert rows[-1] == made[0, inputs["input_ids"].shape[1] :].tolist()
    assert rows[:3] != rows[3:]


def test_log_probabilities_equal_a_plain_forward_pass_before_any_warping(any_model, monkeypatch):
    config = GenerationConfig(temperature=0.4, top_k=5, repetition_penalty=1.3, max_new_tokens=8, top_logprobs=4)
    request = mixed_requests(seeds=(3,))[1]
    rows, encoder = written_tokens(monkeypatch), any_model._engine.encoder
    [[answer]] = any_model.generate([request], config)
    inputs = encoder.encode(request).tensors
    written = torch.tensor(rows[-1])[None]
    whole = {"input_ids": torch.cat([inputs["input_ids"], written], dim=1)}
    for name, value in inputs.items():
        if name != "input_ids":
            per_token = value.shape == inputs["input_ids"].shape
            fill = torch.full_like(written, int(name == "attention_mask"))
            whole[name] = torch.cat([value, fill], dim=1) if per_token else value
    with torch.no_grad():
        logits = any_model._engine.model(**whole).logits[0, inputs["input_ids"].shape[1] - 1 : -1]
    expected = torch.log_softmax(logits.float(), dim=-1)
    assert len(answer.logprobs) == len(rows[-1]) == 8
    for step, (token, logged) in enumerate(zip(rows[-1], answer.logprobs, strict=True)):
        assert logged.token == encoder.tokenizer.decode([token])
        assert logged.logprob == pytest.approx(float(expected[step, token]), abs=1e-3)
        likeliest = expected[step].topk(4).values.tolist()
        assert [value for _, value in logged.top][:4] == pytest.approx(likeliest, abs=1e-3)
        assert (logged.token, logged.logprob) in logged.top
        assert len(logged.top) in (4, 5)


def test_log_probabilities_come_only_when_they_are_asked_for(model):
    [[answer]] = model.generate([request_of(0, 1, "cup")], GREEDY)
    assert answer.logprobs is None


def test_settings_of_the_checkpoint_do_not_break_shared_samples(folders, tmp_path, monkeypatch):
    """Hub checkpoints ask for static caches, penalties and sampling in their configuration."""
    folder = Path(shutil.copytree(folders["llava"], tmp_path / "settings"))
    settings = {"do_sample": True, "temperature": 0.1, "top_k": 3, "top_p": 0.2, "cache_implementation": "static"}
    change_json(folder / "generation_config.json", repetition_penalty=1.3, num_beams=1, **settings)
    model = fresh(TransformersModel.load(str(folder)))
    assert model.identity.settings["repetition_penalty"] == 1.3
    requests, batches = mixed_requests(seeds=(1, 2, 3)), []
    watch(monkeypatch, model, lambda kwargs: batches.append(len(kwargs["input_ids"])))
    together = model.generate(requests, SAMPLED)
    assert batches == [4]
    for request, answers in zip(requests, together, strict=True):
        alone = [Request("x", request.prompt, request.images, (seed,)) for seed in request.seeds]
        assert alike([[completion for [completion] in model.generate(alone, SAMPLED)]]) == alike([answers])
    plain = TransformersModel.load(str(folders["llava"]))
    assert texts(plain.generate(requests, SAMPLED)) != texts(together)
    assert texts(plain.generate(requests, replace(SAMPLED, repetition_penalty=1.3))) == texts(together)


OUT_OF_RANGE: dict[str, tuple[object, ...]] = {
    "temperature": (-0.1, float("nan")),
    "top_p": (0.0, 1.1),
    **dict.fromkeys(("max_new_tokens", "top_k", "repetition_penalty"), (0,)),
    "stop": (("",),),
    "thinking_budget": (-1,),
    "top_logprobs": (-1, 10**6),
}


@pytest.mark.parametrize(
    ("settings", "named"), [({name: value}, name) for name, values in OUT_OF_RANGE.items() for value in values]
)
def test_settings_out_of_range_are_refused_before_anything_is_generated(model, monkeypatch, settings, named):
    watch(monkeypatch, model, lambda _: pytest.fail("generated"))
    for ask in (model.generate, lambda *given: list(model.stream(*given))):
        with pytest.raises(ConfigError, match=rf"{named} is .*Fix: "):
            ask([request_of(0, 1, "cup")], replace(GREEDY, **settings))
