"""The scripted kitchen: its files, its graph, and that its masks are its pixels."""

import collections
import itertools
import json

import av
import numpy as np
import pycocotools.mask as coco_mask
import pytest

from barista_bench.errors import ConfigError
from barista_bench.mini import KitchenVideo, graph_outline, plan_kitchen, write_kitchen
from barista_bench.scene_graph.release import encode

SMALL = {"videos": 3, "width": 320, "height": 180, "seconds": (4, 4)}
RELATIONS = {
    "position": {"under", "on", "inside", "contains", "attached to", "part of"},
    "human_actions": {"pulls", "pushes", "presses", "holds", "touches", "turns"},
}


@pytest.fixture(scope="session")
def kitchen(tmp_path_factory):
    return write_kitchen(tmp_path_factory.mktemp("mini") / "kitchen", num_proc=1, **SMALL)


@pytest.fixture(scope="session")
def graphs(kitchen):
    return {folder.name: json.loads((folder / "coco_annotation.json").read_bytes()) for folder in kitchen}


@pytest.fixture(scope="session")
def outlines():
    """The default nine videos' graphs, for which nothing has to be drawn."""
    return [json.loads(encode(graph_outline(KitchenVideo(plan)))) for plan in plan_kitchen()]


def spans(record):
    ranges = record["image_ranges"] if "image_ranges" in record else [record["image_range"]]
    return [(r["image_id_start"], r["image_id_end"]) for r in ranges]


def category_names(graph):
    names = {c["id"]: c["name"] for c in graph["categories"]}
    return {key: names[c] for key, c in graph["object_id_to_category_id"].items()}


def frames_by_object(graph):
    by_object = collections.defaultdict(list)
    for annotation in graph["annotations"]:
        by_object[annotation["object_id"]].append(annotation["image_id"])
    return by_object


@pytest.mark.full
def test_same_bytes_again_elsewhere_in_two_processes(kitchen, tmp_path):
    again = write_kitchen(tmp_path / "other" / "folder", num_proc=2, **SMALL)
    assert [a.name for a in again] == [a.name for a in kitchen]
    for first, two in zip(kitchen, again, strict=True):
        for name in ("coco_annotation.json", "video.mp4"):
            assert (first / name).read_bytes() == (two / name).read_bytes()


def test_another_seed_is_another_kitchen_and_any_number_of_videos_has_own_ids():
    first, two = ([encode(graph_outline(KitchenVideo(p))) for p in plan_kitchen(seed=s)] for s in (0, 1))
    assert not set(first) & set(two)
    plans = plan_kitchen(videos=14, seed=3)
    ids = [key for plan in plans for key in graph_outline(KitchenVideo(plan)).object_id_to_category_id]
    assert len({plan.video_id for plan in plans}) == 14
    assert len(set(ids)) == len(ids)


def test_each_video_has_its_files(kitchen, graphs):
    assert sorted(f.name for f in kitchen) == ["mini_capsule_01", "mini_fully_automatic_01", "mini_portafilter_01"]
    for folder in kitchen:
        meta = graphs[folder.name]["video_metadata"][0]
        with av.open(str(folder / "video.mp4")) as container:
            stream = container.streams.video[0]
            assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")
            assert stream.average_rate == meta["fps"] == 30
            kinds = [av.video.frame.PictureType(f.pict_type).name for f in container.decode(stream)]
        assert len(kinds) == meta["frame_count"] == 120
        assert "B" in kinds
        assert [n for n, kind in enumerate(kinds) if kind == "I"] == [0, 30, 60, 90]


def test_boxes_are_tight_and_masks_do_not_overlap(graphs):
    for graph in graphs.values():
        by_frame = collections.defaultdict(list)
        for annotation in graph["annotations"]:
            by_frame[annotation["image_id"]].append(annotation)
        for frame in range(0, 120, 17):
            covered = np.zeros((180, 320), int)
            for annotation in by_frame[frame]:
                mask = coco_mask.decode(annotation["segmentation"])
                rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
                x, y, w, h = annotation["bbox"]
                assert (x, y, x + w, y + h) == (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
                covered += mask
            assert covered.max() == 1


@pytest.mark.full
def test_masks_are_the_pixels_of_the_video(kitchen, graphs):
    """Every large mask, cut from the decoded video, has the mean colour that was painted there."""
    plans = {plan.video_id: plan for plan in plan_kitchen(**SMALL)}
    for folder in kitchen:
        with av.open(str(folder / "video.mp4")) as container:
            decoded = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]
        wanted = collections.defaultdict(list)
        for annotation in graphs[folder.name]["annotations"]:
            wanted[annotation["image_id"]].append(annotation)
        compared = 0
        for frame, (picture, owners) in enumerate(KitchenVideo(plans[folder.name]).frames()):
            if frame % 13:
                continue
            assert len(wanted[frame]) == len(np.unique(owners[owners > 0]))
            for annotation in wanted[frame]:
                mask = coco_mask.decode(annotation["segmentation"]).astype(bool)
                assert len(np.unique(owners[mask])) == 1
                if mask.sum() > 200:
                    shown, painted = decoded[frame][mask].mean(0), picture[mask].mean(0)
                    assert np.abs(shown - painted).mean() < 8  # half-size chroma blurs small things
                    compared += 1
        assert compared > 40


def test_the_pixels_of_a_carton_have_its_named_colour():
    """A mask's pixels are its object's, not only consistent: on whole objects the named colour dominates."""
    videos = map(KitchenVideo, plan_kitchen(videos=9, width=320, height=180, seconds=(1, 1)))
    video = next(video for video in videos if video.colours["carton"] == "blue")
    number = video.keys.index("carton") + 1
    red, _, blue = np.concatenate([picture[owners == number] for picture, owners in video.frames()]).mean(0)
    assert blue > red + 20


def test_objects_come_back_with_their_id_and_relations_last_while_an_end_is_out_of_sight(graphs):
    for graph in graphs.values():
        seen = {key: set(frames) for key, frames in frames_by_object(graph).items()}
        gaps = sum(any(b - a > 3 for a, b in itertools.pairwise(sorted(frames))) for frames in seen.values())
        pairs = [
            all(frame in seen.get(key, ()) for key in (relation["source_object_id"], relation["target_object_id"]))
            for relation in graph["relations"]
            for start, end in spans(relation)
            for frame in range(start, end)
        ]
        assert gaps >= 3
        assert pairs.count(False) > 100
        assert pairs.count(True) > 1000


def test_all_relation_values_with_several_ranges(outlines):
    predicates = collections.defaultdict(set)
    for graph in outlines:
        for relation in graph["relations"]:
            predicates[relation["relation_type"]].add(relation["value"])
            ranges = spans(relation)
            assert all(a[1] < b[0] for a, b in itertools.pairwise(ranges))
            source = category_names(graph)[relation["source_object_id"]]
            assert (relation["relation_type"] == "human_actions") == source.endswith(" hand")
        assert any(len(spans(r)) > 1 for r in graph["relations"])
    assert predicates == RELATIONS


def test_kitchens_have_many_verbs_steps_and_things(outlines):
    verbs, steps, categories = collections.defaultdict(set), set(), set()
    for graph in outlines:
        names = [a["display_name"] for a in graph["activities"]]
        assert len(set(names)) >= 12
        assert 4 <= len(graph["process_steps"]) <= 7
        for verb, noun in (name.split(" ", 1) for name in names):
            verbs[verb].add(noun)
        steps |= {s["display_name"] for s in graph["process_steps"]}
        categories |= set(category_names(graph).values())
    assert sum(map(len, verbs.values())) >= 26
    assert sum(len(nouns) >= 5 for nouns in verbs.values()) >= 3
    assert len(steps) >= 8
    assert len(categories) >= 20
    assert {"left hand", "right hand", "capsule", "drawer", "portafilter", "unknown"} <= categories
    for section in ("activities", "process_steps"):  # each class has one id and one name
        pairs = {(s["activity_class_id"], s["display_name"]) for g in outlines for s in g[section]}
        assert len(pairs) == len({i for i, _ in pairs}) == len({n for _, n in pairs})


def test_activities_overlap_and_some_are_short(outlines):
    overlaps, short = 0, 0
    for graph in outlines:
        ranges = sorted(spans(a)[0] for a in graph["activities"])
        overlaps += sum(a[1] > b[0] for a, b in itertools.pairwise(ranges))
        short += sum(end - start < 4 for start, end in ranges)
        assert np.mean([end - start for start, end in ranges]) > 20
        assert 15 * 30 <= graph["video_metadata"][0]["frame_count"] <= 30 * 30
    assert overlaps >= 5
    assert 1 <= short <= 5


def values_of(graph, kind, category=None):
    """(category, value) of all attributes of a type."""
    names = category_names(graph)
    pairs = [(names[a["object_id"]], a["value"]) for a in graph["attributes"] if a["attribute_type"] == kind]
    return pairs if category is None else [value for name, value in pairs if name == category]


def test_states_change_and_each_thing_has_one_at_a_time(outlines):
    changing = collections.defaultdict(set)
    for graph in outlines:
        for category, value in values_of(graph, "state"):
            changing[category].add(value)
        (machine,) = set(values_of(graph, "type", "coffee machine"))
        assert machine in ("fully automatic", "capsule", "portafilter")
        taken = collections.Counter(
            (attribute["object_id"], attribute["attribute_type"], frame)
            for attribute in graph["attributes"]
            for start, end in spans(attribute)
            for frame in range(start, end)
        )
        assert set(taken.values()) == {1}
    assert changing["coffee machine"] >= {"extracting", "rinsing"}
    for category in ("drawer", "lid", "handle", "milk carton"):
        assert changing[category] >= {"open", "close"}
    assert changing["coffee cup"] == {"empty", "full"}


def test_both_hands_often_hold_one_thing_and_one_hand_more_often(outlines):
    held = collections.Counter()
    for graph in outlines:
        names, hands = category_names(graph), collections.defaultdict(set)
        for relation in (relation for relation in graph["relations"] if relation["value"] == "holds"):
            for frame in itertools.chain.from_iterable(itertools.starmap(range, spans(relation))):
                hands[frame, relation["target_object_id"]].add(names[relation["source_object_id"]])
        held.update(map(len, hands.values()))
    assert held[2] > 100
    assert held[1] > 500


def test_same_category_with_other_and_with_same_colour(outlines):
    cups = [values_of(graph, "color", "coffee cup") for graph in outlines]
    assert any(len(set(colours)) < len(colours) for colours in cups)
    assert any(len(set(colours)) > 1 for colours in cups)


def test_fewer_frames_a_second_tell_the_same_in_as_many_seconds(outlines):
    few = [json.loads(encode(graph_outline(KitchenVideo(plan)))) for plan in plan_kitchen(fps=10)]
    for graph, usual in zip(few, outlines, strict=True):
        (facts,) = graph["video_metadata"]
        assert (facts["fps"], facts["frame_count"]) == (10, usual["video_metadata"][0]["frame_count"] // 3)
        for activity, the_same in zip(graph["activities"], usual["activities"], strict=True):
            assert activity["display_name"] == the_same["display_name"]
            for number, usual_number in zip(*spans(activity), *spans(the_same), strict=True):
                assert abs(3 * number - usual_number) < 3


def test_a_video_has_the_frames_a_second_that_its_graph_names(tmp_path):
    (folder,) = write_kitchen(tmp_path / "kitchen", videos=1, width=128, height=72, seconds=(4, 4), fps=10, num_proc=1)
    with av.open(str(folder / "video.mp4")) as container:
        assert (container.streams.video[0].average_rate, container.streams.video[0].frames) == (10, 40)
    graph = json.loads((folder / "coco_annotation.json").read_bytes())
    assert graph["video_metadata"][0]["fps"] == 10
    assert {annotation["image_id"] for annotation in graph["annotations"]} == set(range(40))


def test_replaces_only_its_own_folders(tmp_path):
    tiny = {"videos": 1, "width": 128, "height": 72, "seconds": (0.5, 0.5), "num_proc": 1}
    write_kitchen(tmp_path / "ours", **tiny)
    write_kitchen(tmp_path / "ours", seed=1, **tiny)
    (tmp_path / "ours" / "notes.txt").write_text("somebody's")
    with pytest.raises(ConfigError, match=r"holds 'notes\.txt', which is not ours"):
        write_kitchen(tmp_path / "ours", **tiny)
    (tmp_path / "ours" / ".mini_kitchen").unlink()
    with pytest.raises(ConfigError, match="not a mini kitchen"):
        write_kitchen(tmp_path / "ours", **tiny)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ours"]


@pytest.mark.parametrize(
    "wrong", [{"videos": 0}, {"width": 321}, {"width": 1280, "height": 180}, {"seconds": (5, 3)}, {"fps": 1}]
)
def test_wrong_arguments_are_refused(tmp_path, wrong):
    with pytest.raises(ConfigError):
        write_kitchen(tmp_path / "kitchen", **wrong)
    assert not list(tmp_path.iterdir())
