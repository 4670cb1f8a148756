"""Whether outputs are of one kind, and which of them are the same."""

import numpy as np
import numpy.typing as npt

from okforest._typing import Outputs


def check_alike(outputs: Outputs, training: Outputs, name: str) -> None:
    """Raise a ValueError unless outputs have the width and type of the training outputs."""
    width, expected = (int(np.prod(y.shape[1:])) for y in (outputs, training))
    if width != expected:
        raise ValueError(
            f"{name} has {width} values in each output; the training outputs have {expected}."
        )
    is_text, expects_text = (y.dtype.kind in "UST" for y in (outputs, training))
    if is_text != expects_text and "O" not in (outputs.dtype.kind, training.dtype.kind):
        raise ValueError(
            f"{name} holds {outputs.dtype}; the training outputs hold {training.dtype}, and text "
            "and numbers are never equal."
        )


def distinct(outputs: Outputs) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return where each different output is first, and for every output which of these it is.

    Objects that can be neither sorted nor hashed count as different.
    """
    if outputs.dtype.kind != "O":
        _, first, group = np.unique(outputs, axis=0, return_index=True, return_inverse=True)
        return first, group.ravel()
    try:
        numbers: dict[object, int] = {}
        group = np.array([numbers.setdefault(output, len(numbers)) for output in outputs])
    except TypeError:
        everything = np.arange(len(outputs))
        return everything, everything
    return np.unique(group, return_index=True)[1], group
