#!/bin/sh
# The whole recipe of `--model kitchen`: kitchens, datasets, chats, training. Start it again to continue.
#
#     . .venv/bin/activate && sh scripts/kitchen.sh WORK
#
# WORK/training/early is the checkpoint `kitchen_early` of barista_bench/models/checkpoints. WORK/aided2/model is `kitchen`: it
# continues from WORK/training/model with chats that have aids of a diagnosis.
set -eu
work=$1
export OMP_NUM_THREADS=1
here=$(dirname "$0")

# NAME SEED VIDEOS WIDTH HEIGHT. Seeds below 100 are for tests and `make run`, seeds from 300 on for measuring.
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
      --task grounding,hand_object,referring,relations --out "$work/chats/$name-$aids"
  done
  barista-bench export "$work/data/$name" --format chat --box-format xyxy/100 --out "$work/chats/$name"
done

names=$(echo "$kitchens" | cut -d ' ' -f 1)
python "$here/train_kitchen.py" --out "$work/training" \
  --kitchens $(for name in $names; do echo "$work/kitchens/$name"; done) \
  --chats $(for name in $names; do echo "$work/chats/$name"; done) \
  --weights '{"grounding": 3, "hand_object": 2, "activity_mcq": 2, "referring": 2.5, "relation_extraction": 1, "visual_qa": 1}'

# About 60 % are plain chats, against forgetting. The others have true aids, or inert ones that say nothing of the question.
# START OUT STEPS RATE WEIGHTS
continue_with_aids() {
  python "$here/train_kitchen.py" --start "$1" --out "$2" --steps "$3" --rate "$4" --weights "$5" --batch 8 --drill 2 \
    --chats $(for name in $names; do echo "$work/chats/$name" "$work/chats/$name-true" "$work/chats/$name-inert"; done)
}
continue_with_aids "$work/training/model" "$work/aided" 2000 3e-4 '{"grounding": 2.2, "hand_object": 2.2, "referring": 1.6,
  "activity_mcq": 0.7, "relation_extraction": 2, "visual_qa": 0.7, "grounding-true": 0.8, "grounding-inert": 0.3,
  "hand_object-true": 0.8, "hand_object-inert": 0.3, "referring-true": 2, "referring-inert": 0.8,
  "relation_extraction-true": 1.2, "relation_extraction-inert": 0.5}'
continue_with_aids "$work/aided/model" "$work/aided2" 2400 4e-4 '{"grounding": 3, "hand_object": 3.2, "referring": 2.4,
  "activity_mcq": 0.6, "relation_extraction": 1.5, "visual_qa": 1, "grounding-true": 0.8, "grounding-inert": 0.3,
  "hand_object-true": 0.8, "hand_object-inert": 0.2, "referring-true": 1.6, "referring-inert": 0.6,
  "relation_extraction-true": 1.1, "relation_extraction-inert": 0.5}'
