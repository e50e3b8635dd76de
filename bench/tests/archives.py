"""A site on localhost that serves archives with the collection's inner structure."""

import hashlib
import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from fewlier_bench.data.catalogue import ARCHIVES, Archive


def arff(n_rows, n_columns, n_anomalies, seed=0, decimals=None):
    """Return the text of a file as the collection writes them, anomalies first."""
    values = np.random.default_rng(seed).random((n_rows, n_columns))
    if decimals is not None:
        values = values.round(decimals)
    names = [f"'att {i}'" for i in range(n_columns)]
    lines = [
        "@RELATION 'Table, without duplicates, with normalization, v01'",
        "",
        *(f"@ATTRIBUTE {name} real" for name in names),
        "@ATTRIBUTE 'id' real",
        "@ATTRIBUTE 'outlier' {'yes','no'}",
        "",
        "@DATA",
    ]
    for i, row in enumerate(values.tolist()):
        label = "yes" if i < n_anomalies else "no"
        lines.append(",".join([*map(repr, row), f"{i}.0", f"'{label}'"]))
    return "\n".join(lines) + "\n"


def tar_gz(files):
    """Return an archive of texts by path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


class Site:
    """What is served, how often it was asked for, and how many answers to break off."""

    def __init__(self, monkeypatch):
        self.files, self.n_requests, self.n_broken = {}, 0, 0
        self._monkeypatch = monkeypatch
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def publish(self, name, content, sha256=None):
        """Serve an archive in the place of the collection's, with its checksum unless given."""
        self.files[f"/{name}.tar.gz"] = content
        sha256 = sha256 or hashlib.sha256(content).hexdigest()
        url = f"http://127.0.0.1:{self._server.server_port}/{name}.tar.gz"
        self._monkeypatch.setitem(ARCHIVES, name, Archive(url, sha256))

    def close(self):
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def _handler(site):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.n_requests += 1
                content = site.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if site.n_broken:
                    site.n_broken -= 1
                    content = content[: len(content) // 2]
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        return Handler
