"""Another kind of domain: the kitchen as a workshop, both in graph and domain file, without a word of coffee."""

import json
import re
import shutil
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_benchmark, get_task, read_wording
from barista_bench.benchmarks.barista.released_sets import released_parameters
from barista_bench.benchmarks.barista.temporal_vqa import TemporalSampling
from barista_bench.core.prompt_files import packaged_prompts
from barista_bench.data.folder import build
from barista_bench.data.frozen import read_frozen
from barista_bench.errors import ConfigError
from barista_bench.generate.family import FAMILIES
from barista_bench.generate.generator import generate
from barista_bench.judging.rubric import load_rubric
from barista_bench.scene_graph.domain import load_domain
from barista_bench.writing.checks import foreign_names
from tests.conftest import MadeOnce
from tests.one_run import run

SHIPPED = Path(__file__).parents[2] / "barista_bench" / "scene_graph" / "domain.yaml"
WORKSHOP = {
    "coffee": "timber", "cup": "crate", "mug": "keg", "milk": "paint", "pitcher": "bucket", "saucer": "mat",
    "portafilter": "chisel", "espresso": "plank", "lungo": "beam", "capsule": "peg", "kitchen": "workshop",
    "tamper": "mallet", "tamp": "hammer", "tamping": "hammering", "mill": "lathe", "frother": "sander",
    "froth": "sand", "frothing": "sanding", "frothed": "sanded", "spoon": "scraper", "sugar": "sawdust",
    "syrup": "varnish", "bean": "nail", "ground": "shaved", "grind": "shave", "grinding": "shaving",
    "grinder": "shaver", "brew": "plane", "brewed": "planed", "brewing": "planing", "steam": "char",
    "steaming": "charring", "café": "shop", "tea": "tar", "teaspoon": "small scraper", "puck": "disc",
    "tablespoon": "large scraper", "whiten": "brighten", "jug": "pail", "food": "filler", "drink": "piece",
    "tray": "rack", "bowl": "basin",
}  # fmt: skip
"""Words of coffee making, and what a workshop has instead."""
NAMED = {"categories": "name", "attributes": "value", "activities": "display_name", "process_steps": "display_name"}
"""Tables of an annotation file, and where their rows have a name."""
_WORD = re.compile(rf"\b({'|'.join(sorted(WORKSHOP, key=len, reverse=True))})(s?)\b", re.IGNORECASE)


def in_workshop(text: str) -> str:
    def other(match: re.Match[str]) -> str:
        word = WORKSHOP[match[1].lower()] + match[2]
        return word.capitalize() if match[1][0].isupper() else word

    return _WORD.sub(other, text)


@pytest.fixture(scope="session")
def domain_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("domain") / "workshop.yaml"
    path.write_text(in_workshop(SHIPPED.read_text(encoding="utf-8")), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def workshop(small_kitchen: Path, made_once: MadeOnce) -> Path:
    """The small kitchen with other names for categories, values, activities and steps."""

    def make(root: Path) -> None:
        shutil.copytree(small_kitchen, root, dirs_exist_ok=True)
        for file in root.glob("*/coco_annotation.json"):
            content = json.loads(file.read_text(encoding="utf-8"))
            for table, key in NAMED.items():
                for row in content[table]:
                    row[key] = in_workshop(row[key])
            file.write_text(json.dumps(content), encoding="utf-8")

    return made_once("workshop", make)


def coffee_words(text: str) -> list[str]:
    return sorted({match[0] for match in _WORD.finditer(text)})


@pytest.mark.full
def test_all_families_speak_of_the_workshop(workshop: Path, domain_file: Path, tmp_path: Path) -> None:
    reports = generate(workshop, tmp_path / "made", list(FAMILIES), per_subtask=4, domain=domain_file)
    assert all(report.sampled for report in reports)
    files = (file for file in (tmp_path / "made").rglob("*") if file.suffix in (".json", ".jsonl", ".yaml", ".csv"))
    texts = "\n".join(file.read_text(encoding="utf-8") for file in files)
    named = r'"counts":\s*"[^"]*"|[0-9a-f]{8}-[0-9a-f-]{27}|(mini_)?(capsule|portafilter|fully_automatic)_01'
    texts = re.sub(named, "", texts)
    assert coffee_words(texts) == []
    assert "timber machine" in texts


@pytest.mark.full
def test_sets_of_the_graph_speak_of_the_workshop(workshop: Path, domain_file: Path, tmp_path: Path) -> None:
    configs = ("grounding", "referring", "temporal_vqa")
    sampling = {name: {"domain": str(domain_file), "limit": 30} for name in configs}
    built = build(workshop, tmp_path / "made", configs=configs, sampling=sampling, cache=False, frames="linked")
    for config in built.configs:
        examples = list(read_frozen(built.folder / "frozen" / f"{config.name}.jsonl"))
        assert examples
        assert coffee_words(json.dumps([[e.inputs, e.target] for e in examples], ensure_ascii=False)) == []


@pytest.mark.full
def test_mass_nouns_and_phrases_come_from_the_domain(workshop: Path, domain_file: Path, tmp_path: Path) -> None:
    text = domain_file.read_text(encoding="utf-8")
    changed = tmp_path / "changed.yaml"
    text = text.replace("holds: held by", "holds: gripped by").replace("no_color: [skin]", "no_color: [white]")
    changed.write_text(text, encoding="utf-8")
    sampling = {"grounding": {"domain": str(changed)}}
    built = build(workshop, tmp_path / "made", configs=("grounding",), sampling=sampling, cache=False, frames="linked")
    phrases = [str(e.inputs["phrase"]) for e in read_frozen(built.folder / "frozen" / "grounding.jsonl")]
    assert any("gripped by" in phrase for phrase in phrases)
    assert not any("held by" in phrase or "white" in phrase for phrase in phrases)


def test_prompts_and_rubrics_speak_of_the_workshop(domain_file: Path) -> None:
    setting = f"domain:{domain_file}"
    for name in get_benchmark("barista").task_names:
        ours, prompts = get_task("barista", name).prompts, read_wording("barista", name, setting)
        assert coffee_words("\n".join((prompts.system, prompts.user, *prompts.extra.values()))) == []
        assert (prompts.wording, prompts.version) == (f"domain:{prompts.sha256[:8]}", ours.version)
        assert "{domain." not in prompts.system
        assert prompts.sha256 != ours.sha256
    for name in ("referring", "temporal_vqa"):
        rubric = load_rubric(get_task("barista", name), setting)
        criteria = [text for c in rubric.criteria for text in (c.text, c.scale, *c.steps)]
        assert coffee_words("\n".join((rubric.introduction, *criteria, rubric.vocabulary_text))) == []
        assert rubric.wording == f"domain:{rubric.sha256[:8]}"
    writer = packaged_prompts("barista_bench.writing", "questions", domain_file)
    assert coffee_words(f"{writer.system}\n{writer.user}") == []


def test_a_run_asks_in_the_words_of_the_workshop(workshop: Path, domain_file: Path, tmp_path: Path) -> None:
    data = build(workshop, tmp_path / "data", configs=("relations",), sampling={"relations": {"limit": 2}}, cache=False)
    setting = Path(f"domain:{domain_file}")
    run(data.folder, tmp_path / "run", model="chance", repetitions=1, task="relations", prompts=setting)
    described = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert described["prompts"]["wording"].startswith("domain:")


def test_the_release_has_no_words_of_another_domain() -> None:
    with pytest.raises(ConfigError, match="the release has no parameter for domain"):
        released_parameters("temporal_vqa", TemporalSampling(frames=6, domain="default"))


def test_a_written_question_names_nothing_of_the_domain_that_does_not_change(domain_file: Path) -> None:
    domain = load_domain(domain_file)
    text = "Is the jar, or the timber machine, sanded? It is folded."
    assert set(foreign_names(text, [], domain)) == {"jar", "timber", "timber machine", "folded"}
    assert "timber machine" not in foreign_names(text, [])


def test_a_domain_without_a_needed_entry_names_it(domain_file: Path, workshop: Path, tmp_path: Path) -> None:
    text = domain_file.read_text(encoding="utf-8")
    bare = tmp_path / "bare.yaml"
    without = re.sub(r"(?m)^(prompts|phrases):\n(?:  .*\n)+", "", text)
    bare.write_text(without, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bare\.yaml: prompts: missing\. Fix"):
        read_wording("barista", "relations", f"domain:{bare}")
    settings = {"configs": ("grounding",), "sampling": {"grounding": {"domain": str(bare)}}, "cache": False}
    with pytest.raises(ConfigError, match=r"bare\.yaml: phrases: not there\. Fix"):
        build(workshop, tmp_path / "made", **settings)
    bare.write_text(text.replace("doing: making timber", 'doing: "making\\ntimber"'), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"prompts\.doing"):
        read_wording("barista", "relations", f"domain:{bare}")
