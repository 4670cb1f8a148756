"""Requests to a server, and pictures as files."""

import http.client
import io
import json
from urllib.parse import urlsplit

from PIL import Image


def encoded(image, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind)
    return file.getvalue()


def request(url, method, path, body=None, **headers):
    """Return the status, the headers and the content of an answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=90)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if "json" in answer.getheader("Content-Type", ""):
        content = json.loads(content)
    return answer.status, answer.headers, content
