"""A reverse proxy before a study: it adds TLS, and forwards the rest byte by byte."""

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Certificate:
    """Of localhost, signed by its own key."""

    def __init__(self, folder: Path) -> None:
        self.file, self.key = folder / "cert.pem", folder / "key.pem"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        subprocess.run([*command, "-out", self.file, "-keyout", self.key], check=True, capture_output=True)

    def trusting(self) -> ssl.SSLContext:
        """A visitor's settings."""
        return ssl.create_default_context(cafile=self.file)


@contextmanager
def tls_proxy(listener: socket.socket, port: int, certificate: Certificate) -> Iterator[None]:
    """Serves TLS on a socket that listens, in front of a port of this machine."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate.file, certificate.key)
    loop = asyncio.new_event_loop()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside_reader, inside_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pump(reader, inside_writer), _pump(inside_reader, writer))

    def serve() -> None:
        loop.run_until_complete(asyncio.start_server(forward, sock=listener, ssl=context))
        loop.run_forever()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await source.read(65536):
            target.write(part)
            await target.drain()
    target.close()
