"""Datasets: built from a release, and read.

| what | where |
|---|---|
| the release: opened, fetched from the Hub, unpacked | `origin`, `sources`, `archives` |
| which examples a set holds | `plan`, `survey`, `splits` |
| `build`: frames added, configs prepared, a folder written | `folder`, `builder`, `media`, `tables`, `card` |
| formats of both sides: rows, frozen lines, the manifest | `rows`, `frozen`, `manifest` |
| a built set, read with its frames | `dataset`, `built_rows`, `shared_frames`, `shared_values`, `trace` |
| the library `datasets`: its cache, our names in `load_dataset` | `cache_entries`, `register` |
"""
