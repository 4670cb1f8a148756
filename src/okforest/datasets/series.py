"""Time series, sequences and spectra."""

import numpy as np
from sklearn.utils import Bunch

from okforest._utils.arrays import Floats
from okforest.datasets._files import Source, check_name
from okforest.datasets._tables import read_rows
from okforest.datasets.files import read_series

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
        "time_series_data_2018/: name_TRAIN and name_TEST, as .ts or .txt, optionally with .gz"
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
    origin="StatLib, from the R package caret, converted: tecator.csv.gz",
    terms="See the notice at StatLib; cite the source.",
)


@UCR.loader
def fetch_ucr(name: str) -> Bunch:
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
    >>> from okforest.datasets import fetch_ucr
    >>> fetch_ucr("GunPoint").data.shape
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
    names = [f"{stem}{ending}" for ending in (".ts.gz", ".ts", ".txt.gz", ".txt")]
    with UCR.open(*names) as file:
        return read_series(file, stem)


@PROMOTERS.loader
def fetch_promoters() -> Bunch:
    """Load the promoters of E. coli: DNA sequences in two classes.

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
    header, rows = read_rows(PROMOTERS.open("promoters.csv.gz"))
    bases = np.array([row[2:] for row in rows])
    return Bunch(
        data=bases,
        sequences=np.array(["".join(row) for row in bases]),
        target=np.array([row[0] for row in rows]),
        names=np.array([row[1] for row in rows]),
        feature_names=header[2:],
        DESCR=PROMOTERS.text,
    )


@TECATOR.loader
def fetch_tecator() -> Bunch:
    """Load spectra of meat samples and the contents of the samples.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (215, 100), absorbances; ``target`` of shape (215, 3), contents in per
        cent; ``feature_names``; ``target_names``: moisture, fat and protein; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import fetch_tecator
    >>> tecator = fetch_tecator()
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
