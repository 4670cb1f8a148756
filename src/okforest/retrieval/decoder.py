"""Decodes pictures with Pillow, in this process or in another one that can be killed.

Run as a program, this file decodes what it reads from its standard input. It imports nothing of
okforest or NumPy, so that a process that was killed is replaced in a tenth of a second.
"""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple

CHANNELS = {"L": 1, "RGB": 3, "I": 4}  # bytes a pixel; "I" is one integer
MOST_TEXT = 2**22  # bytes of the texts of a PNG file, which may be compressed a thousandfold
MOST_HEADER = 2**16  # bytes


class PictureError(ValueError):
    """A picture that cannot be read; the message gives the reason.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from okforest.retrieval import PictureError, SubwindowIndex
    >>> from sklearn.datasets import load_digits
    >>> images = (load_digits().images[:2] * 15).astype("uint8")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = SubwindowIndex.build(f"{folder}/index", images)
    ...     size = Path(folder, "broken.png").write_text("not a picture")
    ...     try:
    ...         index.search(f"{folder}/broken.png")
    ...     except PictureError as error:
    ...         print(type(error).__name__)
    PictureError
    """


class ExpensivePictureError(Exception):
    """A picture that would take more time than a decoder may spend."""


class Pixels(NamedTuple):
    """A decoded picture: its mode in Pillow, its size, and its pixels row by row."""

    mode: str
    width: int
    height: int
    data: bytes | bytearray


def decode(
    file: Any, name: str, formats: Sequence[str], max_pixels: float, affordable: float = math.inf
) -> Pixels:
    """Return the pixels of a file, upright, or raise a PictureError that calls it by this name.

    Above the affordable number of pixels, an ExpensivePictureError is raised.
    """
    pillow = import_module("PIL.Image")
    try:
        with pillow.open(file, formats=formats) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise PictureError(
                    f"{name} has {width} × {height} pixels; at most {max_pixels} are read. "
                    "Make it smaller."
                )
            if width * height > affordable:
                raise ExpensivePictureError
            mode = image.mode
            if mode == "F":
                raise PictureError(f"{name} has floating-point pixels; convert it to 8 or 16 bits.")
            grey = "L" if mode in ("1", "L", "LA") else "RGB"
            upright = import_module("PIL.ImageOps").exif_transpose(image)
            image = upright.convert("I" if mode.startswith("I") else grey)
            return Pixels(image.mode, image.width, image.height, image.tobytes())
    except (PictureError, ExpensivePictureError):
        raise
    except FileNotFoundError as error:
        raise PictureError(f"{name} does not exist.") from error
    except pillow.UnidentifiedImageError as error:
        known = ", ".join(formats)
        raise PictureError(f"{name} is not a picture in a known format ({known}).") from error
    except pillow.DecompressionBombError as error:
        raise PictureError(
            f"{name} has too many pixels; at most {max_pixels} are read. Make it smaller."
        ) from error
    # The errors of Pillow for damaged files are not documented; none may end a server.
    except Exception as error:
        raise PictureError(
            f"{name} cannot be read as a picture ({type(error).__name__}: {error}). It may be "
            "damaged."
        ) from error


class Decoder:
    """A process that decodes one picture at a time, and is replaced if a picture ends it.

    Parameters
    ----------
    seconds : float
        CPU time that a picture may take.
    affordable : float, default=inf
        Number of pixels above which a picture is too expensive.
    """

    def __init__(self, seconds: float, affordable: float = math.inf):
        self.seconds, self.affordable = seconds, affordable
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "subprocess.Popen[bytes]":
        """Return the process, a new one if there is none."""
        if self.process is None:
            # In a process group of its own, it does not get the Ctrl-C that stops the server. With
            # -P, the modules beside this file do not hide those that Pillow imports.
            self.process = subprocess.Popen(
                [sys.executable, "-P", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # warnings about pictures
                process_group=0,
            )
        return self.process

    def close(self) -> int | None:
        """End the process, and return its exit status."""
        process, self.process = self.process, None
        if process is None:
            return None
        process.kill()  # without effect if the process has ended
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # the process may not have read all bytes
                pipe.close()  # type: ignore[union-attr]
        return process.wait()

    def decode(
        self,
        source: bytes | str | os.PathLike[str],
        name: str,
        formats: Sequence[str],
        max_pixels: int,
    ) -> Pixels:
        """Return the pixels of a file or of its content, as the function ``decode`` does."""
        content = source if isinstance(source, bytes) else None
        task = {
            "path": None if content is not None else os.fspath(source),
            "n_bytes": len(content or b""),
            "seconds": self.seconds,
            "arguments": [name, list(formats), max_pixels, self.affordable],
        }
        try:
            answer, data = _exchange(self.start(), task, content or b"")
        except BaseException as error:
            status = self.close()
            if not isinstance(error, Exception):
                raise
            if status == -signal.SIGPROF:
                raise ExpensivePictureError from None
            raise PictureError(f"{name} cannot be read: its decoder ended ({status}).") from None
        if "error" in answer:
            raise PictureError(answer["error"])
        if not data:
            raise ExpensivePictureError
        mode, width, height = answer["header"]
        return Pixels(mode, width, height, data)


def _exchange(process: Any, task: dict[str, Any], content: bytes) -> tuple[Any, bytearray]:
    """Send a picture to a process, and return its answer."""
    process.stdin.write(json.dumps(task).encode() + b"\n")
    process.stdin.write(content)
    process.stdin.flush()
    line = process.stdout.readline(MOST_HEADER)
    if not line.endswith(b"\n"):
        raise EOFError
    answer = json.loads(line)
    data = bytearray()
    if "header" in answer:
        mode, width, height = answer["header"]
        data = bytearray(CHANNELS[mode] * width * height)
        if process.stdout.readinto(data) < len(data):
            raise EOFError
    return answer, data


def _serve() -> None:
    """Decode pictures until the standard input ends."""
    # Otherwise the first picture of a kind would pay for the imports.
    import_module("PIL.Image").preinit()
    for module in ("ImageOps", "MpoImagePlugin", "TiffImagePlugin", "WebPImagePlugin"):
        import_module(f"PIL.{module}")
    png: Any = import_module("PIL.PngImagePlugin")
    png.MAX_TEXT_MEMORY = MOST_TEXT
    while line := sys.stdin.buffer.readline():
        task = json.loads(line)
        content = sys.stdin.buffer.read(task["n_bytes"])
        # The signal ends the process wherever it is; an exception would wait for Python code.
        signal.setitimer(signal.ITIMER_PROF, task["seconds"])
        data: bytes | bytearray = b""
        try:
            *header, data = decode(
                BytesIO(content) if task["path"] is None else task["path"], *task["arguments"]
            )
            answer: dict[str, Any] = {"header": header}
        except PictureError as error:
            answer = {"error": str(error)[: MOST_HEADER // 16]}
        except ExpensivePictureError:
            answer = {}
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
