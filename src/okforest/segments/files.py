"""Image files in a folder."""

import os
from pathlib import Path
from typing import Literal

import numpy as np
from sklearn.utils import Bunch

from okforest.segments._images import read_image, require_pillow


def list_images(
    folder: str | os.PathLike[str], damaged: Literal["raise", "skip"] = "raise"
) -> Bunch:
    """List the image files in a folder and the folders in it, and label them by folder.

    Every file with the ending of an image format is read once, to find those that are damaged.
    Segmenters read the files again, a few at a time, when they are needed. It needs Pillow
    (the extra ``images``).

    Parameters
    ----------
    folder : str or path-like
        The folder.
    damaged : {"raise", "skip"}, default="raise"
        What to do about files that cannot be read: raise an error, or leave them out and list them
        in ``skipped``.

    Returns
    -------
    bunch : Bunch
        ``paths``, the files, sorted; ``target``, for each the path of its folder relative to
        ``folder`` (empty for files directly in it); ``skipped``, pairs of a path and the reason.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from okforest.segments import list_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "cats").mkdir()
    ...     Image.new("L", (20, 10)).save(Path(folder) / "cats" / "tom.png")
    ...     list_images(folder).target
    array(['cats'], dtype='<U4')
    """
    if damaged not in ("raise", "skip"):
        raise ValueError(f"damaged={damaged!r}; use 'raise' or 'skip'.")
    root = Path(folder)
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a folder. Pass the folder of the images.")
    endings = set(require_pillow().registered_extensions())
    found = sorted(p for p in root.rglob("*") if p.suffix.lower() in endings and p.is_file())
    if not found:
        raise FileNotFoundError(
            f"{root} has no image files; their names end in .png, .jpg or another ending that "
            "Pillow knows."
        )
    paths, skipped = [], []
    for path in found:
        try:
            read_image(path)
            paths.append(path)
        except ValueError as error:
            if damaged == "raise":
                raise
            skipped.append((str(path), str(error.__cause__ or error)))
    target = [path.parent.relative_to(root).as_posix().removeprefix(".") for path in paths]
    return Bunch(
        paths=[str(path) for path in paths], target=np.array(target, dtype=str), skipped=skipped
    )
