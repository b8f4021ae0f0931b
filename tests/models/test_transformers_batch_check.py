"""A model that is wrong in batches is found out before its first batch, and asked one example at a time."""

import logging

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.models.local.batch_check import BatchCheck, first_steps, largest_distance, tolerance_of  # noqa: E402
from barista_bench.models.local.inputs import PromptEncoder, _stack  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from tests.models.transformers_kit import GREEDY, SAMPLED, alike, many_requests, mixed_requests, request_of, watch  # noqa: E402


def unchecked(model: TransformersModel) -> TransformersModel:
    model._engine.batch_check = None
    return model


def test_a_model_that_is_right_in_batches_stays_in_batches(any_model):
    assert {answer.batch_size for [answer] in unchecked(any_model).generate(mixed_requests(), GREEDY)} == {4}
    check = any_model._engine.batch_check
    assert check.agrees
    assert check.distance < 1e-4
    assert any_model.batch_check.endswith(f" {check.distance:.2g} from those alone (rounding: up to 0.001)")


def test_it_is_right_in_bfloat16_too(folders):
    model = TransformersModel.load(str(folders["gemma3"]), dtype="bfloat16")
    assert {answer.batch_size for [answer] in model.generate(mixed_requests(), GREEDY)} == {4}
    assert model._engine.batch_check.agrees  # some processors round both alike, others do not
    assert model._engine.batch_check.tolerance == tolerance_of(torch.bfloat16)


def exchange_images(self: PromptEncoder, encoded: list, batch=PromptEncoder.batch) -> dict:
    """The effect of an index into the images of a batch that is not shifted."""
    made = batch(self, encoded)
    return made | {"pixel_values": made["pixel_values"].flip(0)} if len(encoded) > 1 else made


@pytest.mark.full
def test_a_model_that_mixes_up_images_is_asked_one_by_one(model, monkeypatch, caplog):
    requests = many_requests(seeds=(1, 2))
    model.batch_size = 1
    alone = model.generate(requests, SAMPLED)
    model.batch_size = 8
    monkeypatch.setattr(PromptEncoder, "batch", exchange_images)
    with caplog.at_level(logging.WARNING, logger="barista_bench.models.local.engine"):
        answers = unchecked(model).generate(requests, SAMPLED)
    assert alike(answers) == alike(alone)
    assert {answer.batch_size for each in answers for answer in each} == {1}
    assert model.batch_size == 1
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("asking one at a time, since batches cannot be trusted: logits of two examples together")


def test_a_family_that_is_wrong_in_batches_gives_the_answers_of_single_examples(zoo):
    """Idefics gives other logits in batches of unequal texts, and says nothing."""
    model = TransformersModel.load(zoo("idefics"), batch_size=4)
    answers = model.generate(mixed_requests(), GREEDY)
    assert model._engine.batch_check.distance > 0.1
    assert alike(answers) == [alike(model.generate([request], GREEDY))[0] for request in mixed_requests()]


def test_a_model_that_fails_only_in_batches_is_asked_one_by_one(model, monkeypatch):
    def fail(self: PromptEncoder, encoded: list, batch=PromptEncoder.batch) -> dict:
        if len(encoded) > 1:
            raise KeyError("num_crops")
        return batch(self, encoded)

    monkeypatch.setattr(PromptEncoder, "batch", fail)
    answers = unchecked(model).generate(mixed_requests(), GREEDY)
    assert [answer.batch_size for [answer] in answers] == [1, 1, 1, 1]
    assert model.batch_check == "two examples that succeed alone fail together: KeyError: 'num_crops'"


def test_one_prompt_at_a_time_is_not_checked(model, monkeypatch):
    calls = []
    watch(monkeypatch, unchecked(model), lambda kwargs: calls.append(len(kwargs["input_ids"])))
    model.batch_size = 1
    model.generate(mixed_requests(), GREEDY)
    model.batch_size = 8
    model.generate(mixed_requests()[:1], GREEDY)
    assert calls == [1, 1, 1, 1, 1]
    assert model.batch_check is None


def test_the_batch_check_generates_a_few_short_answers_once(model, monkeypatch):
    calls = []
    watch(monkeypatch, unchecked(model), lambda kwargs: calls.append(len(kwargs["input_ids"])))
    for _ in range(2):
        model.generate(mixed_requests(), GREEDY)
    assert calls == [1, 1, 2, 4, 4]


def test_requests_without_images_are_never_in_a_batch_with_images(zoo):
    """Llama 3.2 Vision gives a text other logits beside images than without them."""
    model = TransformersModel.load(zoo("mllama"))
    requests = [*mixed_requests(), request_of(4, 0, "a jug"), request_of(5, 0, "milk or tea")]
    together = model.generate(requests, GREEDY)
    assert [answer.batch_size for [answer] in together] == [4, 4, 4, 4, 2, 2]
    assert alike(together) == [alike(model.generate([request], GREEDY))[0] for request in requests]


def test_a_check_without_images_is_followed_by_one_with_images(model):
    unchecked(model).generate([request_of(n, 0, "a jug") for n in range(2)], GREEDY)
    assert not model._engine.batch_check.has_images
    model.generate(mixed_requests(), GREEDY)
    assert model._engine.batch_check.has_images


def test_the_batch_check_stops_comparing_at_a_near_tie():
    same, tie, turned = (torch.tensor(row) for row in ([1.0, 0.0, -1.0], [2.0, 1.9999, 0.0], [1.9999, 2.0, 0.0]))
    alone, together = [(5, same), (0, tie), (7, same)], [(5, same), (1, turned), (7, -same)]
    assert 0 < largest_distance([alone], [together]) < 1e-3
    assert largest_distance([alone], [[(5, -same)]]) == pytest.approx(2.0)


def test_tolerances_grow_with_the_roundings_of_the_number_type():
    wide, half, short = (tolerance_of(dtype) for dtype in (torch.float32, torch.float16, torch.bfloat16))
    assert (wide, half, short) == (0.001, pytest.approx(0.0117, abs=1e-4), pytest.approx(0.0938, abs=1e-4))
    assert not BatchCheck(0.002, wide, True).agrees
    assert BatchCheck(0.02, short, True).agrees
    assert not BatchCheck(None, short, True, "KeyError: 'x'").agrees


def test_masked_logits_do_not_count(model):
    steps = first_steps(
        model._engine.model,
        model._engine.encoder.encode(mixed_requests()[0]).tensors,
        pad_id=0,
        end_ids=model._engine.reader.end_ids,
    )
    masked = [(token, logits.index_fill(0, torch.tensor([3]), -torch.inf)) for token, logits in steps[0]]
    assert largest_distance([masked], [masked]) == 0.0


def test_only_tensors_known_to_be_safe_are_put_one_after_another():
    row = {"input_ids": torch.ones(1, 3, dtype=torch.long), "attention_mask": torch.ones(1, 3, dtype=torch.long)}
    tensors = row | {"pixel_values": torch.zeros(2, 3, 8, 8)}
    assert _stack([tensors, tensors], 0)["pixel_values"].shape == (4, 3, 8, 8)
    pooling = tensors | {
        "image_token_pooling": torch.arange(4)[:, None]
    }  # Molmo 2: counts the patches of a whole batch
    assert _stack([pooling, pooling], 0) is None
    assert _stack([pooling], 0) is pooling
