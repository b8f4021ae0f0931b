"""Commands of scripts, as children of a process that has imported their modules: a start takes milliseconds.

Tests that start `barista-bench` itself cover the behaviour of a start.
"""

import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = (
    *(
        "barista_bench.cli.app",
        "barista_bench.api",
        "barista_bench.annotate.exporting",
        "barista_bench.annotate.running",
    ),
    *("barista_bench.generate.generator", "barista_bench.judging.session", "barista_bench.reporting"),
    *("barista_bench.models.local.model", "barista_bench.models.local.processors"),
)
PROGRAM = """#!{python} -ISE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps([{module!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(request).to_bytes(8)], [0, 1, 2])
    server.sendall(request)
    code = server.recv(8)
os._exit(int(code) if code else 137)
"""


def write_program(path: Path, address: Path, module: str = "") -> None:
    """Write a program that asks the server at the address to run a module, or without one as Python runs a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PROGRAM.format(python=sys.executable, address=str(address), module=module), encoding="utf-8")
    path.chmod(0o755)


@contextmanager
def command_server(folder: Path) -> Iterator[Path]:
    """The address of a server, in a folder with a short name."""
    address = folder / "commands"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        number = listener.fileno()
        server = subprocess.Popen([sys.executable, "-m", __name__, str(number)], pass_fds=[number], cwd=ROOT)
    with server:
        yield address
        server.terminate()


def serve(listener: socket.socket) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    children = 0
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection)
        connection.close()
        children += 1
        while children and os.waitpid(-1, os.WNOHANG) != (0, 0):
            children -= 1


def _answer(connection: socket.socket) -> NoReturn:
    code = 1
    try:
        length, streams, _, _ = socket.recv_fds(connection, 8, 3)
        request = connection.recv(int.from_bytes(length), socket.MSG_WAITALL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        code = _run(*json.loads(request))
    except BaseException:  # noqa: BLE001  (the child must not return into the server)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(code).encode())
        os._exit(code)


def _run(module: str, arguments: list[str], folder: str, environment: dict[str, str]) -> int:
    """The exit code of a command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = [module, *arguments] if module else arguments
    warnings.simplefilter("ignore")
    try:
        if module:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
