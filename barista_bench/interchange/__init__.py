"""Run folders in the layout of the released BARISTA harness: read into runs of ours (`importing`), and written from
them (`exporting`)."""
