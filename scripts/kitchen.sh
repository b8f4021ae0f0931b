#!/bin/sh
# The whole recipe of `--model kitchen`: kitchens, datasets, chats, training. Start it again to continue.
#
#     . .venv/bin/activate && sh scripts/kitchen.sh WORK
#
# WORK/training/model and WORK/training/early are the checkpoints of barista_bench/models/checkpoints. WORK/aided/model has
# seen aids of a diagnosis too. It is not a checkpoint yet: the card of `kitchen` says what it loses.
set -eu
work=$1
export OMP_NUM_THREADS=1
here=$(dirname "$0")

# NAME SEED VIDEOS WIDTH HEIGHT. Seeds below 100 are for tests and `make run`, those from 300 on for measuring.
kitchens='r101 101 6 640 360
r102 102 6 640 360
s201 201 18 320 180
s202 202 18 320 180
s203 203 18 320 180
s204 204 18 320 180
s205 205 18 320 180
s206 206 18 320 180
s207 207 18 320 180
s208 208 18 320 180'

echo "$kitchens" | while read -r name seed videos width height; do
  if [ ! -d "$work/kitchens/$name" ]; then
    barista-bench mini "$work/kitchens/$name" --seed "$seed" --videos "$videos" --width "$width" --height "$height"
  fi
  [ -d "$work/chats/$name" ] && continue
  python - "$work/kitchens/$name" > "$work/kitchens/$name.json" <<'P'
import json, pathlib, sys
videos = sorted(path.parent.name for path in pathlib.Path(sys.argv[1]).glob("*/video.mp4"))
print(json.dumps({"train": videos, "test": []}))
P
  rm -rf "$work/data/$name"
  barista-bench build --source "$work/kitchens/$name" --out "$work/data/$name" --no-cache --frames linked \
    --split-file "$work/kitchens/$name.json" \
    --sampling relations.frame_step=40 --sampling relations.limit=300 \
    --sampling grounding.fraction=0.3 --sampling grounding.limit=900 \
    --sampling hand_object.limit=600 --sampling referring.limit=600 \
    --sampling activity.per_class=null --sampling activity.limit=500 \
    --sampling temporal_vqa.per_class=null --sampling temporal_vqa.limit=300
  for aids in true inert; do
    barista-bench export "$work/data/$name" --format chat --box-format xyxy/100 --aids "$aids" \
      --task grounding,hand_object,referring --out "$work/chats/$name-$aids"
  done
  barista-bench export "$work/data/$name" --format chat --box-format xyxy/100 --out "$work/chats/$name"
done

names=$(echo "$kitchens" | cut -d ' ' -f 1)
python "$here/train_kitchen.py" --out "$work/training" --threads 2 \
  --kitchens $(for name in $names; do echo "$work/kitchens/$name"; done) \
  --chats $(for name in $names; do echo "$work/chats/$name"; done) \
  --weights '{"grounding": 3, "hand_object": 2, "activity_mcq": 2, "referring": 2.5, "relation_extraction": 1, "visual_qa": 1}'

# Two thirds are plain chats, against forgetting. The others have true aids, or inert ones of which nothing is to be believed.
python "$here/train_kitchen.py" --out "$work/aided" --threads 2 --start "$work/training/model" \
  --chats $(for name in $names; do echo "$work/chats/$name" "$work/chats/$name-true" "$work/chats/$name-inert"; done) \
  --steps 700 --batch 8 --drill 2 --rate 2e-4 \
  --weights '{"grounding": 1.8, "hand_object": 1.8, "referring": 1.8, "activity_mcq": 0.8, "relation_extraction": 1.2,
    "visual_qa": 0.8, "grounding-true": 0.8, "hand_object-true": 0, "referring-true": 2.8, "grounding-inert": 0,
    "hand_object-inert": 0, "referring-inert": 1.2}'
