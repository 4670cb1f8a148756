"""Parts of a forest that stay on the workers which have grown them, without the data."""

from typing import Any

from okforest.dask._cluster import ATTEMPTS, cancelling, require


class LostPart(RuntimeError):
    """A part of a forest is no longer on the worker that has grown it."""


def keep_parts(client: Any, parts: list[Any]) -> list[Any]:
    """Return tasks whose results are those of others, where they are, and release the others.

    Parts are grown from data that is removed after the fit. If a worker died, Dask would have to
    grow its parts again, could not, and would cancel all that depends on them without a reason. The
    tasks returned do not depend on the data: run again, elsewhere, they raise a :class:`LostPart`.
    """
    distributed = require("distributed")
    kept: dict[str, Any] = {}
    for _attempt in range(ATTEMPTS):
        missing = [part for part in parts if part.key not in kept]
        where = client.who_has(missing)
        tasks: list[Any] = []
        with cancelling(client, tasks, keep=True):
            for part in missing:
                options = {
                    "workers": list(where[part.key]) or None,
                    "allow_other_workers": True,  # or the loss of the worker would not be noticed
                }
                tasks.append(client.submit(kept_part, part.key, pure=False, **options))
            for _ in distributed.as_completed(tasks, loop=client.loop):
                pass
        # A task that Dask has given to another worker finds nothing there, and is repeated.
        for part, task in zip(missing, tasks, strict=True):
            if task.status == "finished":
                kept[part.key] = task
    for part in parts:
        if part.key not in kept:
            raise distributed.client.FutureCancelledError(part.key, "its worker died")
    return [kept[part.key] for part in parts]


def kept_part(key: str) -> Any:
    """Return a part that this worker has grown."""
    held = require("distributed").get_worker().data
    if key not in held:
        raise LostPart(
            "parts of the forest were on workers that have died, or it was released; fit it again."
        )
    return held[key]


def known_of(part: Any) -> Any:
    """Return the kernel and the training outputs, which every part has."""
    return part.kernel, part.outputs
