"""Time series, sequences and spectra."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from okforest._utils.arrays import Floats
from okforest.datasets.sources import Source, check_name, open_text, read_rows

UCR = Source(
    folder="ucr",
    title="Time series of the UCR archive",
    description=(
        "Univariate time series of equal length, in classes: GunPoint (50 + 150 series of length "
        "150, 2 classes), ItalyPowerDemand (67 + 1,029, 24, 2), Trace (100 + 100, 275, 4), or any "
        "other data set of the archive whose files are present."
    ),
    citation="Dau et al., The UCR time series archive, IEEE/CAA J. Autom. Sinica 6:1293, 2019.",
    origin=(
        "https://www.timeseriesclassification.com or https://www.cs.ucr.edu/~eamonn/"
        "time_series_data_2018/: name_TRAIN and name_TEST, as .ts, .tsv or .txt, optionally "
        "with .gz"
    ),
    terms="Research use.",
)
PROMOTERS = Source(
    folder="dna",
    title="Promoters of E. coli",
    description="106 DNA sequences of 57 bases: 53 promoters (+) and 53 others (-).",
    citation="Harley and Reynolds, 1987; Towell, Shavlik and Noordewier, AAAI 1990.",
    origin=(
        "UCI Machine Learning Repository, Molecular Biology (Promoter Gene Sequences), converted: "
        "promoters.csv.gz has columns class, instance and 57 bases"
    ),
    terms="CC BY 4.0.",
)
TECATOR = Source(
    folder="tecator",
    title="Tecator",
    description=(
        "215 samples of meat: contents of moisture, fat and protein in per cent, and absorbances "
        "at 100 wavelengths from 850 to 1050 nm."
    ),
    citation="Borggaard and Thodberg, Analytical Chemistry 64:545, 1992.",
    origin=(
        "StatLib, from the R package caret, converted: tecator.csv.gz has columns moisture, fat, "
        "protein and the 100 absorbances"
    ),
    terms="See the notice at StatLib; cite the source.",
)


@UCR.loader
def load_ucr(name: str) -> Bunch:
    """Load a time-series classification problem of the UCR archive.

    Parameters
    ----------
    name : str
        Name of the data set, such as "GunPoint", "ItalyPowerDemand" or "Trace".

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (n, length); ``target``, the classes as text; ``split``, "train" or
        "test"; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_ucr
    >>> load_ucr("GunPoint").data.shape
    (200, 150)
    """
    check_name(name)
    series, classes = zip(*(_read_ucr(f"{name}_{part}") for part in ("TRAIN", "TEST")), strict=True)
    return Bunch(
        data=np.concatenate(series),
        target=np.concatenate(classes),
        split=np.repeat(["train", "test"], [len(part) for part in series]),
        DESCR=UCR.text,
    )


def _read_ucr(stem: str) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.str_]]]:
    endings = (".ts", ".tsv", ".txt")
    names = [f"{stem}{ending}{packed}" for ending in endings for packed in (".gz", "")]
    with UCR.open(*names) as file:
        return read_series(file, stem)


def read_ucr(path: str | PathLike[str]) -> Bunch:
    r"""Read time series and their classes from a file of the UCR archive.

    Parameters
    ----------
    path : path-like
        A ``.ts`` file (values, then a colon and the class), or a ``.tsv`` or ``.txt`` file (the
        class, then values), which may be compressed by gzip (``.gz``).

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (n, length), with NaN for missing values; ``target``, the classes as text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from okforest.datasets import read_ucr
    >>> path = Path(mkdtemp()) / "series.ts"
    >>> _ = path.write_text("@data\n0.1,0.2,0.3:up\n0.3,0.2,0.1:down\n")
    >>> read_ucr(path).target
    array(['up', 'down'], dtype='<U4')
    """
    with open_text(path) as file:
        data, target = read_series(file, Path(path).name)
    return Bunch(data=data, target=target)


def read_series(file: Iterable[str], name: str) -> tuple[Floats, Any]:
    """Return the series and the classes of a file of the UCR archive."""
    lines = [line.strip() for line in file if line.strip()]
    if "@data" in map(str.lower, lines):  # .ts: values, then a colon and the class
        begin = [line.lower() for line in lines].index("@data") + 1
        rows = [line.rpartition(":") for line in lines[begin:]]
        cells, labels = [row[0].split(",") for row in rows], [row[2] for row in rows]
    else:  # .txt: the class, then values
        rows_of_cells = [line.split() for line in lines]
        cells = [row[1:] for row in rows_of_cells]
        labels = [f"{float(row[0]):g}" for row in rows_of_cells]
    if not cells:
        raise ValueError("the file has no series.")
    if len({len(row) for row in cells}) > 1 or any(":" in cell for row in cells for cell in row):
        raise ValueError(
            f"{name} has series of different lengths or several variables; only univariate series "
            "of equal length are read."
        )
    values = [[np.nan if cell == "?" else float(cell) for cell in row] for row in cells]
    return np.array(values), np.array(labels)


@PROMOTERS.loader
def fetch_promoters() -> Bunch:
    """Load the promoters of E. coli: DNA sequences in two classes.

    Without a file in the folder named by ``OKFOREST_DATA``, the data set
    "molecular-biology_promoters" of OpenML is downloaded by
    :func:`sklearn.datasets.fetch_openml`, which caches it and needs pandas.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (106, 57), the bases as text; ``sequences``, the same as 106 strings;
        ``target``, "+" or "-"; ``names`` of the sequences; ``feature_names``, the positions
        relative to the start of transcription; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import fetch_promoters
    >>> promoters = fetch_promoters()
    >>> promoters.sequences[0][:20], promoters.target[0]
    ('tactagcaatacgcttgcgt', np.str_('+'))
    """
    try:
        header, rows = read_rows(PROMOTERS.open("promoters.csv.gz"))
    except FileNotFoundError as missing:
        header, rows = _download_promoters(missing)
    bases = np.array([row[2:] for row in rows])
    return Bunch(
        data=bases,
        sequences=np.array(["".join(row) for row in bases]),
        target=np.array([row[0] for row in rows]),
        names=np.array([row[1] for row in rows]),
        feature_names=header[2:],
        DESCR=PROMOTERS.text,
    )


def _download_promoters(missing: FileNotFoundError) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the promoters on OpenML, in the layout of the file."""
    try:
        table = fetch_openml("molecular-biology_promoters", version=1, as_frame=True).frame
    except (ImportError, OSError) as error:
        raise OSError(f"downloading from OpenML failed: {error}. {missing}") from error
    if "instance" not in table:  # OpenML may declare it as the name of a row
        table["instance"] = table.index
    columns = ["class", "instance", *(name for name in table if name.startswith("p"))]
    return columns, table[columns].astype(str).to_numpy().tolist()


@TECATOR.loader
def load_tecator() -> Bunch:
    """Load spectra of meat samples and the contents of the samples.

    The data set "tecator" of OpenML also has principal components and 25 samples for extrapolation.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (215, 100), absorbances; ``target`` of shape (215, 3), contents in per
        cent; ``feature_names``; ``target_names``: moisture, fat and protein; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_tecator
    >>> tecator = load_tecator()
    >>> tecator.data.shape, tecator.target_names
    ((215, 100), ['moisture', 'fat', 'protein'])
    """
    header, rows = read_rows(TECATOR.open("tecator.csv.gz"))
    values = np.array([[float(cell) for cell in row] for row in rows])
    return Bunch(
        data=values[:, 3:],
        target=values[:, :3],
        feature_names=header[3:],
        target_names=header[:3],
        DESCR=TECATOR.text,
    )
