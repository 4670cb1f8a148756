"""The settings of a server: what is bounded, and how."""

from dataclasses import dataclass, field

from okforest.retrieval._pictures import FORMATS, Limits


@dataclass(frozen=True)
class ServerSettings:
    """Limits of a server.

    Parameters
    ----------
    token : str, optional
        Secret that requests which change the index must present; without one, none may change it.
    max_bytes : int, default=20 MiB
        Bytes of an uploaded picture.
    max_body_bytes : int, default=256 MiB
        Bytes of all uploads that are held in memory at the same time; more are refused with 503.
        Uploads of up to 1/64 of ``max_bytes`` are read nevertheless.
    max_pixels : int, default=25_000_000
        Height times width of an uploaded picture: photographs of 24 megapixels are read.
    formats : tuple of str
        Formats of uploaded pictures, recognised by their content: by default BMP, GIF, JPEG, PNG,
        TIFF and WEBP.
    workers : int, default=2
        Requests that are computed at the same time.
        Beside these, one large picture is searched for at a time: of more than a megapixel or a
        megabyte, or a tenth of a second to decode.
    queue : int, default=100
        Requests that may wait, and as many with large pictures; more are refused with status 503.
    seconds : float, default=10.0
        Time of a computation, the wait included; later, the answer is 503.
    upload_seconds : float, default=20.0
        Time that a client has to send its request; later, it is refused with 408.
    hosts : tuple of str
        Host names under which the server is reached; empty for any. It protects servers on a
        local address from pages that resolve their own name to it.

    Examples
    --------
    >>> from okforest.retrieval import ServerSettings, SubwindowIndex
    >>> def serve_small_pictures(folder):
    ...     from okforest.retrieval.server import serve  # needs the extra serve
    ...
    ...     settings = ServerSettings(max_bytes=2**20, hosts=("127.0.0.1", "localhost"))
    ...     serve(SubwindowIndex(folder), port=8000, settings=settings)
    """

    token: str | None = field(default=None, repr=False)
    max_bytes: int = 20 * 2**20
    max_body_bytes: int = 256 * 2**20
    max_pixels: int = 25_000_000
    formats: tuple[str, ...] = FORMATS
    workers: int = 2
    queue: int = 100
    seconds: float = 10.0
    upload_seconds: float = 20.0
    hosts: tuple[str, ...] = ()

    @property
    def limits(self) -> Limits:
        """What is refused before it is decoded."""
        return Limits(self.max_bytes, self.max_pixels, self.formats)
