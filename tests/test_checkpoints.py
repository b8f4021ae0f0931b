"""One function loads checkpoints: its arguments for the readers, and its messages when they fail. Real checkpoints:
tests/models."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors import SafetensorError  # noqa: E402

from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.files.checkpoints import fetch_checkpoint, load_pretrained  # noqa: E402


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether `org/name` is an adapter would be asked of the Hub, again and again where there is none."""
    monkeypatch.setattr("transformers.utils.peft_utils.find_adapter_config_file", lambda *_, **__: None)


class Readers:
    """Replaces `from_pretrained` of a processor and a model; keeps the arguments."""

    def __init__(self, *missing: str, error: Exception | None = None) -> None:
        self.missing, self.error = set(missing), error
        self.given: list[dict[str, object]] = []

    def processor(self, name: str, **settings: object) -> str:
        self.given.append(settings)
        return f"processor of {name}"

    def model(self, name: str, **settings: object) -> object:
        self.given.append(settings)
        if self.error:
            raise self.error
        return torch.nn.Linear(1, 1), {"missing_keys": self.missing}

    def load(self, name: str = "org/name", **options: object) -> tuple[torch.nn.Module, str]:
        return load_pretrained(name, self.processor, self.model, kind="a stand-in", **options)


def test_both_readers_get_the_revision_and_the_permission_to_run_code():
    readers = Readers()
    model, processor = readers.load(device="cpu", dtype="float32")
    assert (processor, model.training) == ("processor of org/name", False)
    shared = {"revision": "main", "trust_remote_code": False}
    safe = {"use_safetensors": True, "output_loading_info": True}
    assert readers.given == [shared, {**shared, **safe, "dtype": "float32"}]
    readers.load(revision="v2", trust_remote_code=True, device=None)
    assert all(
        settings.items() >= {"revision": "v2", "trust_remote_code": True}.items() for settings in readers.given[2:]
    )


@pytest.mark.parametrize(
    "error", [OSError, ImportError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, SafetensorError]
)
def test_an_error_of_transformers_is_shown_in_one_line(error):
    with pytest.raises(ModelError) as caught:
        Readers(error=error("no such thing.\nA long story.")).load()
    said = str(caught.value)
    assert said.startswith(f"model org/name: cannot be loaded as a stand-in: {error.__name__}: ")
    assert ". Fix: " in said
    assert "\n" not in said


@pytest.mark.parametrize("name", ["./gone", "~/gone", "/gone", "some/where/gone"])
def test_a_device_or_folder_that_is_not_there_is_refused_before_anything_is_read(name, tmp_path):
    readers = Readers()
    with pytest.raises(ModelError, match=r"^encoder .*gone: there is no such folder\. Fix: check the path"):
        readers.load(name, role="encoder")
    with pytest.raises(ModelError, match=r"a folder has no revisions\. Fix: leave the revision out"):
        readers.load(str(tmp_path), revision="main")
    with pytest.raises(ModelError, match=r"device 'toaster': .*\. Fix: give --device auto, cpu"):
        readers.load(device="toaster")
    assert not readers.given


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(
        ModelError, match=r"device 'cuda': this machine, as torch sees it, has 0 CUDA GPUs. Fix: give --device auto"
    ):
        Readers().load(device="cuda")


def test_only_optional_weights_may_be_missing():
    with pytest.raises(ModelError, match=r"weights are missing \(a, b, c, \.\.\.\)\. Fix: download it again"):
        Readers("d", "c", "b", "a", "pooler.bias").load()
    with pytest.raises(ModelError, match=r"weights are missing \(mean_pooler.bias, "):
        Readers("mean_pooler.bias", "pooler.bias").load(optional=("pooler.",))
    Readers("pooler.bias").load(optional=("pooler.",))


def test_another_kind_of_model_is_named_before_its_missing_weights():
    def check(model: object) -> None:
        raise ModelError(f"{type(model).__name__} is another kind")

    with pytest.raises(ModelError, match="Linear is another kind"):
        Readers("a").load(check=check)


def test_a_checkpoint_of_the_hub_is_fetched_without_pickles_and_named_by_its_commit(tmp_path, monkeypatch):
    asked = []
    snapshot = tmp_path / "snapshots" / "c0ffee"
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *a, **k: asked.append((a, k)) or str(snapshot))
    assert fetch_checkpoint("org/model", "main") == (snapshot, "c0ffee")
    [(names, given)] = asked
    assert (names, given["revision"]) == (("org/model",), "main")
    assert {"*.safetensors", "*.json", "*.jinja"} <= set(given["allow_patterns"])
    assert "*.bin" not in given["allow_patterns"]


def test_a_checkpoint_that_is_nowhere_is_an_error_with_the_cause(tmp_path, monkeypatch):
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no route to the Hub")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(ModelError, match=r"org/model: is not a folder.*no route to the Hub.*Fix"):
        fetch_checkpoint("org/model")
    with pytest.raises(ModelError, match="a folder has no revisions"):
        fetch_checkpoint(str(tmp_path), "main")
    (tmp_path / "config.json").write_text("{}")
    folder, content = fetch_checkpoint(str(tmp_path))
    (tmp_path / "config.json").write_text("[]")
    assert (folder, len(content)) == (tmp_path, 64)
    assert fetch_checkpoint(str(tmp_path))[1] != content
