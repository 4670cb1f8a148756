"""A server under mixed load: 16 clients for some minutes, its memory and the status of each answer.

Clients search for uploads, for images of the index and for parts, ask for explanations and
thumbnails, send hostile uploads, and add and remove images with the token.
"""

import argparse
import http.client
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
from benchmarks import machine
from benchmarks.retrieval.speed import generated
from PIL import Image

from okforest._utils.report import Table
from okforest.retrieval import SubwindowIndex
from okforest.segments import RandomSubwindows

HOST, TOKEN = "127.0.0.1", "load"
SERVER_ERRORS = tuple(code for code in range(500, 600) if code != 503)
HOSTILE = (b"not a picture", b"", b"\x89PNG\r\n\x1a\n" + bytes(100), b"<svg/>", bytes(3 * 2**20))


class Client(threading.Thread):
    """Sends requests until a moment, and keeps their status and time."""

    def __init__(self, number, port, pictures, until):
        super().__init__()
        self.rng = np.random.default_rng(number)
        self.port, self.pictures, self.until = port, pictures, until
        self.number = number
        self.status = Counter()
        self.seconds = defaultdict(list)
        self.n_failed = 0

    def run(self):
        """Send requests."""
        while time.monotonic() < self.until:
            what, method, path, body = self.choose()
            start = time.perf_counter()
            try:
                connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
                headers = {"Authorization": f"Bearer {TOKEN}"} if "change" in what else {}
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                answer.read()
                self.status[what, answer.status] += 1
                self.seconds[what].append(time.perf_counter() - start)
                if answer.status == 503:
                    time.sleep(0.2)
            except (OSError, http.client.HTTPException):
                self.n_failed += 1  # a hostile body may end with a closed connection
                if what != "hostile":
                    self.status[what, "failed"] += 1
            finally:
                connection.close()

    def choose(self):
        """Return what to do next."""
        picture = self.pictures[self.rng.integers(len(self.pictures))]
        image, other = self.rng.integers(0, len(self.pictures), 2)
        x = self.rng.random()
        if x < 0.45:
            return "search, upload", "POST", "/api/search?k=20", picture
        if x < 0.55:
            return "search, part", "POST", "/api/search?box=10,10,50,50", picture
        if x < 0.70:
            return "search, image", "GET", f"/api/images/{image}/search", None
        if x < 0.78:
            return "explain", "POST", f"/api/explain/{other}", picture
        if x < 0.92:
            return "thumbnail", "GET", f"/api/images/{image}/thumbnail", None
        if x < 0.97:
            return "hostile", "POST", "/api/search", HOSTILE[self.rng.integers(len(HOSTILE))]
        if x < 0.985:
            name = f"client-{self.number}-{self.rng.integers(5)}.png"
            return "change, add", "POST", f"/api/images?name={name}", picture
        number = self.rng.integers(len(self.pictures), 4 * len(self.pictures))
        return "change, remove", "DELETE", f"/api/images/{number}", None


def memory_of(process):
    """Return the resident memory of a process, in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1e3
    return 0.0


def start_server(index, port):
    """Start the command line's server, and wait until it answers."""
    command = [sys.executable, "-m", "okforest", "index", "serve", str(index)]
    environment = os.environ | {"OKFOREST_TOKEN": TOKEN}
    options = ["--port", str(port), "--max-megabytes", "2"]
    server = subprocess.Popen(
        [*command, *options], env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    while True:
        try:
            connection = http.client.HTTPConnection(HOST, port, timeout=5)
            connection.request("GET", "/api/info")
            connection.getresponse().read()
            return server
        except OSError:
            if server.poll() is not None:
                raise RuntimeError("the server has not started") from None
            time.sleep(0.2)


def main() -> None:
    """Run the load and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--json", help="file for the memory over time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        images = generated(range(options.images))
        for i, image in enumerate(images):
            Path(folder, "pictures").mkdir(exist_ok=True)
            Image.fromarray(image).save(Path(folder, "pictures", f"{i:05d}.png"))
        SubwindowIndex.build(
            Path(folder, "index"), Path(folder, "pictures"), segmenter=RandomSubwindows(200)
        )
        pictures = []
        for image in images:
            file = io.BytesIO()
            Image.fromarray(image).save(file, "PNG")
            pictures.append(file.getvalue())
        server = start_server(Path(folder, "index"), options.port)
        try:
            begin = time.monotonic()
            until = begin + 60 * options.minutes
            clients = [Client(k, options.port, pictures, until) for k in range(options.clients)]
            for client in clients:
                client.start()
            memory = []
            while any(client.is_alive() for client in clients):
                memory.append((time.monotonic() - begin, memory_of(server.pid)))
                time.sleep(min(5.0, 3 * options.minutes))
            for client in clients:
                client.join()
        finally:
            server.terminate()
            server.wait()
    if options.json:
        Path(options.json).write_text(json.dumps(memory))
    print_answers(clients, options.minutes)
    print_memory(memory, options.minutes)


def print_answers(clients, minutes):
    """Print the table of requests: their number, the status of the answers, their times."""
    status = sum((client.status for client in clients), Counter())
    rows = []
    for what in sorted({what for what, _ in status}):
        seconds = np.concatenate([client.seconds[what] for client in clients])
        counts = {str(code): n for (name, code), n in status.items() if name == what}
        p50, p99 = 1e3 * np.quantile(seconds, [0.5, 0.99]) if len(seconds) else (0, 0)
        text = ", ".join(f"{code}: {n:,}" for code, n in sorted(counts.items()))
        rows.append([what, f"{sum(counts.values()):,}", text, f"{p50:.0f}", f"{p99:.0f}"])
    busy = sum(n for (_, code), n in status.items() if code == 503)
    bad = sum(n for (_, code), n in status.items() if code in SERVER_ERRORS or code == "failed")
    closed = sum(client.n_failed for client in clients) - sum(
        n for (_, code), n in status.items() if code == "failed"
    )
    about = machine.describe()
    print("Printed by `python -m benchmarks.retrieval.load`.\n")
    print(f"### Requests of {len(clients)} clients in {minutes:g} minutes\n")
    header = ["request", "number", "status", "median (ms)", "99 % (ms)"]
    print(Table(header, rows).markdown())
    print(f"\n{about['CPU']}, {about['cores']} cores, {about['date']}.\n")
    print(
        f"{status.total():,} requests; status 503: {busy:,}; other 5xx, or no answer: {bad:,};\n"
        f"hostile uploads that ended with a closed connection: {closed:,}; "
        f"load of the machine: {about['load at start']}.\n"
    )


def print_memory(memory, minutes):
    """Print the resident memory of the server: at the start, and in six periods."""
    seconds, values = np.array(memory).T
    edges = np.linspace(0, minutes, 7)
    cells = ["resident memory (MB)", f"{values[0]:.0f}"]
    for begin, end in pairwise(60 * edges):
        part = values[(begin <= seconds) & (seconds <= end)]
        text = f"{part.mean():.0f} ({part.min():.0f} to {part.max():.0f})" if len(part) else "–"
        cells.append(text)
    header = ["minutes", "start", *(f"{a:.3g} to {b:.3g}" for a, b in pairwise(edges))]
    print("### Memory of the server\n")
    print(Table(header, [cells]).markdown())


if __name__ == "__main__":
    main()
