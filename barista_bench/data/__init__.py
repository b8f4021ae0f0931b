"""Build datasets from a release, and read datasets.

| step | module |
|---|---|
| the release: opened, and split by video; fetched from the Hub, unpacked | `origin`; `source`, `archives` |
| which examples a set holds | `plan` |
| `build`: frames added, configs prepared, a folder written, for the Hub too | `folder`, `builder`, `tables` |
| formats of both sides: rows, frozen lines, the folder's manifest and card | `rows`, `frozen`, `manifest` |
| a built set, read with its frames; one frame followed through all tasks | `dataset`, `shared_frames`; `trace` |
| releases and linked frames in `load_dataset`, in one process | `register` |
"""
