"""``okforest index serve``: a page for people and an interface for programs."""

import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from okforest.cli.console import plain_errors, print_message
from okforest.cli.index import Index, counted

SHORT = 16  # characters of a token


def serve(
    index: Index,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the secret for changes; or the variable OKFOREST_TOKEN. Without one, "
            "the server is read-only."
        ),
    ] = None,
    max_megabytes: Annotated[float, typer.Option(min=0.001, help="Size of an upload.")] = 20.0,
    workers: Annotated[int, typer.Option(min=1, help="Searches at the same time.")] = 2,
    queue: Annotated[int, typer.Option(min=1, help="Searches that may wait.")] = 100,
) -> None:
    """Serve an index: a page for people and an interface for programs."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex, web

        token = _token(token_file)
        local = host in ("127.0.0.1", "localhost", "::1")
        settings = web.ServerSettings(
            token=token,
            max_bytes=int(max_megabytes * 2**20),
            workers=workers,
            queue=queue,
            hosts=("127.0.0.1", "localhost", "::1") if local else (),
        )
        # Refused requests and errors are lines on the standard error stream.
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
        opened = SubwindowIndex(index)
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        changes = "changes need the token" if token else "read-only"
        message = f"{counted(len(opened))} on http://{place} ({changes}); Ctrl-C stops it"
        web.serve(opened, host, port, settings, lambda: print_message(message))


def _token(file: Path | None) -> str | None:
    """Return the secret for changes, from a file or from the environment."""
    if file is None:
        token = os.environ.get("OKFOREST_TOKEN", "")
    else:
        try:
            token = file.read_text().strip()
        except OSError as error:
            raise ValueError(f"--token-file {file} cannot be read: {error.strerror}.") from error
        if not token:
            raise ValueError(f"{file} is empty; write a secret to it.")
    if 0 < len(token) < SHORT:
        print_message(
            f"warning: the token has {len(token)} characters and can be guessed; use a long random "
            "one, such as the output of: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token or None
