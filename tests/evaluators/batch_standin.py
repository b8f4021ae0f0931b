"""A server with a batch API, beside the stand-in of live calls.

`on_call` sees (method, path, place) before and after each call, and may raise or kill the client there. Each answered
line is in `paid`, so a line that is paid twice shows.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import httpx2

from tests.served_standin import good_reply


class BatchServer(httpx2.BaseTransport):
    def __init__(self, on_call: Callable[[str, str, str], None] = lambda method, path, place: None) -> None:
        self.on_call, self.files, self.batches = on_call, dict[str, bytes](), dict[str, dict[str, Any]]()
        self.paid, self.polls = Counter[str](), Counter[str]()
        self.refuses: Callable[[str], int | None] = lambda custom_id: None
        self.calls = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/v1")
        self.calls += 1
        self.on_call(request.method, path, "before")
        status, content = self._serve(request, path)
        self.on_call(request.method, path, "after")
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return httpx2.Response(status, content=body, request=request)

    def _serve(self, request: httpx2.Request, path: str) -> tuple[int, Any]:
        if request.method == "POST" and path == "/files":
            name = f"file-{len(self.files)}"
            content = request.read()
            start = content.index(b'{"custom_id"')
            self.files[name] = content[start : content.rindex(b"\r\n--")]
            return 200, {"id": name}
        if request.method == "POST":
            order, name = json.loads(request.read()), f"batch-{len(self.batches)}"
            self.batches[name] = {**order, "id": name, "status": "in_progress"}
            return 200, self.batches[name]
        if path == "/batches":
            return 200, {"data": list(self.batches.values()), "has_more": False}
        if path.startswith("/files/"):
            return 200, self.files[path.split("/")[2]]
        batch = self.batches[path.rpartition("/")[2]]
        self.polls[batch["id"]] += 1
        if self.polls[batch["id"]] > 1 and batch["status"] == "in_progress":
            self._answer(batch)
        return 200, batch

    def _answer(self, batch: dict[str, Any]) -> None:
        lines = []
        for line in map(json.loads, self.files[batch["input_file_id"]].splitlines()):
            refused = self.refuses(line["custom_id"])
            if refused is None:
                self.paid[line["custom_id"]] += 1
                response = {"status_code": 200, "body": good_reply(line["body"])}
            else:
                response = {"status_code": refused, "body": {"error": {"message": "made to fail"}}}
            lines.append({"custom_id": line["custom_id"], "response": response})
        name = f"{batch['id']}-out"
        self.files[name] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        batch.update(status="completed", output_file_id=name)


@contextmanager
def listening(server: BatchServer) -> Iterator[str]:
    """Serve other processes. Yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            request = httpx2.Request(self.command, f"http://standin{self.path}", content=content)
            with suppress(OSError):  # the client is gone
                response = server.handle_request(request)
                self.send_response(response.status_code)
                self.send_header("content-length", str(len(response.content)))
                self.end_headers()
                self.wfile.write(response.content)

        do_POST = do_GET

        def log_message(self, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as host:
        Thread(target=host.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{host.server_port}/v1"
        host.shutdown()
