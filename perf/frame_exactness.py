"""Frames against FFmpeg: files of many containers and codecs, sound and damaged, each read by many fresh readers.

    python perf/frame_exactness.py [--readers 100] [--only NAME]

The reference decodes from the first packet with one thread and no seek. Our reader must return exactly these pictures
or refuse the frame, and every fresh reader must do the same. A damaged file has 30 random bytes in its third quarter.
FFmpeg (the program) writes the clips: 96 x 64 px, 40 frames. Frames that the reference reports as corrupt must be
refused.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import av
import numpy as np
import typer

from barista_bench.errors import VideoError
from barista_bench.media.video import open_reader
from barista_bench.media.video.pyav_reader import PyavReader

FRAMES, SIZE, DAMAGED_BYTES = 40, "96x64", 30
H264 = "-c:v libx264 -preset superfast -pix_fmt yuv420p"
HEVC = "-c:v libx265 -preset superfast -x265-params log-level=none -pix_fmt yuv420p"
CLIPS = {
    f"{H264} -bf 2 -g 12": "h264.mp4 h264.mov h264.mkv h264.avi h264.ts h264.m2ts h264.flv h264.3gp h264.h264 h264.f4v",
    f"{H264} -bf 2 -g 12 -x264-params open-gop=1": "h264_open_gop.mp4",
    f"{H264} -x264-params intra-refresh=1:keyint=20:bframes=0": "h264_intra_refresh.mp4",
    "-c:v libx264 -preset superfast -pix_fmt yuv444p -bf 2": "h264_444.mp4",
    "-c:v libx264 -preset superfast -pix_fmt yuv420p10le -bf 2": "h264_10bit.mp4",
    f"{H264} -flags +ilme+ildct -x264-params tff=1": "h264_interlaced.mp4",
    f"{H264} -bf 2 -g 12 -movflags frag_keyframe+empty_moov": "h264_fragmented.mp4",
    f"{HEVC} -g 12": "hevc.mp4 hevc.mkv hevc.ts",
    "-c:v libsvtav1 -preset 12 -g 12": "av1.mp4",
    "-c:v mpeg4 -bf 2 -g 12 -q:v 4": "mpeg4.mp4 mpeg4.avi mpeg4.nut",
    "-c:v mpeg2video -bf 2 -g 12 -q:v 4": "mpeg2.mp4 mpeg2.mkv mpeg2.ts mpeg2.mxf",
    "-c:v prores_ks": "prores.mov",
    "-c:v mjpeg -q:v 4 -pix_fmt yuvj420p": "mjpeg.mov mjpeg.avi",
    "-c:v qtrle": "qtrle.mov",
    "-c:v png": "png.mov",
    "-c:v dnxhd -profile:v dnxhr_lb -pix_fmt yuv422p -s 256x128": "dnxhd.mov",
    "-c:v libaom-av1 -cpu-used 8 -g 12": "av1.mkv",
    "-c:v ffv1": "ffv1.mkv",
    "-c:v libtheora -q:v 7 -g 12": "theora.ogv",
    "-c:v libvpx -cpu-used 8 -g 12": "vp8.webm",
    "-c:v libvpx-vp9 -cpu-used 8 -g 12": "vp9.webm vp9.mp4",
    "-c:v libvpx-vp9 -cpu-used 5 -auto-alt-ref 1 -lag-in-frames 16 -g 20": "vp9_alt_ref.webm",
    "-c:v msmpeg4v2 -g 12 -q:v 4": "msmpeg4.avi",
    "-c:v huffyuv": "huffyuv.avi",
    "-c:v rawvideo -pix_fmt bgr24": "raw.avi",
    "-c:v mpeg1video -bf 2 -g 12 -q:v 4": "mpeg1.mpg",
    "-c:v mpeg2video -bf 2 -g 12 -q:v 4 -f vob": "mpeg2.vob",
    "-c:v flv1 -g 12 -q:v 4": "flv1.flv",
    "-c:v wmv2 -g 12 -q:v 4": "wmv2.wmv wmv2.asf",
    "-c:v h263 -s 128x96 -g 12 -q:v 4": "h263.3gp",
    "": "gif.gif",
}
"""Names of files by FFmpeg's options."""
FAULTS = ("wrong", "differ between readers", "batches differ", "refused without cause", "found by another pass")


def write_clip(path: Path, options: str) -> bool:
    """Write a clip whose pictures all differ; False if this FFmpeg cannot."""
    source = f"testsrc2=size={SIZE}:rate=25,noise=alls=12:all_seed=1"
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-f", "lavfi", "-i", source, "-frames:v", str(FRAMES)]
    done = subprocess.run([*command, *options.split(), str(path)], capture_output=True, check=False)
    return done.returncode == 0 and path.is_file()


def damage(path: Path, seed: int) -> None:
    data, random = bytearray(path.read_bytes()), np.random.default_rng(seed)
    place = int(random.integers(len(data) // 2, len(data) * 3 // 4 - DAMAGED_BYTES))
    data[place : place + DAMAGED_BYTES] = random.integers(0, 256, DAMAGED_BYTES, dtype=np.uint8).tobytes()
    path.write_bytes(data)


def reference(path: Path) -> list[tuple[int | None, bytes | None]]:
    """Return time and picture of each frame in order of display, decoded by one thread, without a seek.

    The picture is None if the decoder calls it corrupt. Packets that fail are passed over.
    """
    pictures: list[tuple[int | None, bytes | None]] = []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_type, stream.codec_context.thread_count = "NONE", 1
        for packet in container.demux(stream):
            with suppress(av.error.FFmpegError):
                for frame in stream.codec_context.decode(packet):
                    picture = None if frame.is_corrupt else frame.to_ndarray(format="rgb24").tobytes()
                    pictures.append((frame.pts, picture))
    return pictures


def read(path: Path, indices: list[int]) -> tuple[bytes, ...] | str:
    """The frames that a fresh reader returns in one call, or "refused"."""
    try:
        with open_reader(path) as reader:
            return tuple(np.ascontiguousarray(picture).tobytes() for picture in reader.read(indices))
    except VideoError:
        return "refused"


def outcome(path: Path, readers: int, *, is_sound: bool) -> Counter[str]:
    """How many frames are exact, refused, wrong, differ between readers, or are missing at the end."""
    known, counts = reference(path), Counter[str]()
    try:
        with open_reader(path) as reader:
            count, by_time, times = len(reader), reader.index.seekable, reader.index.pts.tolist()
    except VideoError:
        return Counter({"the file is refused": 1})
    truths = dict(known) if by_time else dict(enumerate(picture for _, picture in known))
    sample = sorted({0, count // 3, count // 2, count * 5 // 8, count * 3 // 4, count - 1})
    for index in range(count):
        results = {read(path, [index]) for _ in range(readers if index in sample else 1)}
        counts["differ between readers"] += len(results) > 1
        for result in results:
            truth = truths.get(times[index] if by_time else index)
            exact = isinstance(result, tuple) and result[0] == truth
            counts["refused" if result == "refused" else "exact" if exact else "wrong"] += 1
    if is_sound:
        counts["refused without cause"] += counts["refused"]
    with PyavReader(path) as reader:
        refused = [index for index in range(count) if read(path, [index]) == "refused"]
        counts["found by another pass"] += reader.undecodable() != refused
    batches = {read(path, sample) for _ in range(max(2, readers // 10))}
    counts["batches differ"] += len(batches) > 1
    return counts


def main(readers: int = 100, only: str = "") -> None:
    print("| file | sound | damaged |\n|:--|:--|:--|")
    faults = 0
    clips = [(name, arguments) for arguments, names in CLIPS.items() for name in names.split() if only in name]
    for name, arguments in clips:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            if not write_clip(path, arguments):
                print(f"| {name} | FFmpeg does not write it | |")
                continue
            sound = outcome(path, 3, is_sound=True)
            damage(path, len(name))
            damaged = outcome(path, readers, is_sound=False)
        faults += sum(counts[what] for counts in (sound, damaged) for what in FAULTS)
        print(f"| {name} | {_text(sound)} | {_text(damaged)} |", flush=True)
    print(f"\n{faults} faults")


def _text(counts: Counter[str]) -> str:
    return ", ".join(f"{what} {count}" for what, count in counts.items() if count)


if __name__ == "__main__":
    typer.run(main)
