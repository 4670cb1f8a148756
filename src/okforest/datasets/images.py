"""Images: digits, letters, faces."""

import numpy as np
from sklearn.utils import Bunch

from okforest.datasets.sources import Source

URL = "https://hastie.su.domains/ElemStatLearn/datasets/"

USPS = Source(
    folder="usps",
    title="USPS handwritten digits",
    description=(
        "9,298 images of digits from envelopes, 16 × 16 grey levels in [-1, 1]: 7,291 for training "
        "and 2,007 for testing."
    ),
    citation="LeCun et al., Handwritten digit recognition with a back-propagation network, 1990.",
    origin=f"Hastie, Tibshirani and Friedman, The Elements of Statistical Learning; {URL}",
    downloads={
        "zip.train.gz": (
            f"{URL}zip.train.gz",
            "66ebf231ab51f2cf6ac1a892d0f98ccffee1079d7a5db638c1f11f366046ca16",
        ),
        "zip.test.gz": (
            f"{URL}zip.test.gz",
            "8dacc3c6e136af6c3488de9e5113a7daf140c8c2f1f0b61c54ee02f03f1a962f",
        ),
    },
)
OCR_LETTERS = Source(
    folder="ocr_letters",
    title="OCR letters",
    description=(
        "6,877 handwritten words without their first letters, in 10 folds: 52,152 letters of "
        "16 × 8 binary pixels, in 26 classes."
    ),
    citation=(
        "Kassel, A comparison of approaches to on-line handwritten character recognition, 1995; "
        "Taskar, Guestrin and Koller, Max-margin Markov networks, NIPS 2003."
    ),
    origin=(
        "http://ai.stanford.edu/~btaskar/ocr/, converted: letters.npz contains pixels_packed "
        "(bits) and labels, and for each word word_length and folds"
    ),
)
ORL_FACES = Source(
    folder="orl_faces",
    title="ORL (AT&T) database of faces",
    description="400 images of 112 × 92 grey levels: 10 images of each of 40 people.",
    citation=(
        "Samaria and Harter, Parameterisation of a stochastic model for human face "
        "identification, 1994."
    ),
    origin=(
        "AT&T Laboratories Cambridge, converted: orl_faces.npz contains images, subject (1 to 40) "
        "and shot (1 to 10)"
    ),
    terms="Free for research with acknowledgement of AT&T Laboratories Cambridge.",
)


@USPS.loader
def fetch_usps() -> Bunch:
    """Load the USPS handwritten digits, downloading them if necessary.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (9298, 256), grey levels row by row; ``target``, the digits;
        ``images`` of shape (9298, 16, 16); ``split``, "train" or "test"; ``feature_names``;
        ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import fetch_usps
    >>> usps = fetch_usps()
    >>> usps.images.shape, usps.target[:5]
    ((9298, 16, 16), array([6, 5, 4, 7, 3]))
    """
    tables = []
    for name in ("zip.train.gz", "zip.test.gz"):
        with USPS.open(name) as file:
            lines = file.readlines()
        if not lines:
            raise ValueError("the file is empty.")
        tables.append(np.loadtxt(lines, ndmin=2))
    table = np.concatenate(tables)
    return Bunch(
        data=table[:, 1:],
        target=table[:, 0].astype(np.int64),
        images=table[:, 1:].reshape(-1, 16, 16),
        split=np.repeat(["train", "test"], [len(part) for part in tables]),
        feature_names=[f"pixel_{i}_{j}" for i in range(16) for j in range(16)],
        DESCR=USPS.text,
    )


@OCR_LETTERS.loader
def load_ocr_letters() -> Bunch:
    """Load handwritten words, which are sequences of letters.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (52152, 128), the binary pixels of the letters; ``target``, the letters a
        to z; ``word``, the position of each letter's word; ``words``, the words without their first
        letters; ``fold``, the fold of each word; ``feature_names``; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_ocr_letters
    >>> letters = load_ocr_letters()
    >>> letters.data.shape, letters.words[:3]
    ((52152, 128), array(['ommanding', 'ommanding', 'ommanding'], dtype='<U14'))
    """
    file = OCR_LETTERS.arrays("letters.npz")
    pixels = np.unpackbits(file["pixels_packed"], axis=1)[:, :128]
    letters = (file["labels"].astype(np.uint32) + ord("a")).view("<U1")
    lengths, folds = file["word_length"].astype(np.int64), file["folds"].astype(np.int64)
    words = ["".join(word) for word in np.split(letters, np.cumsum(lengths)[:-1])]
    return Bunch(
        data=pixels,
        target=letters,
        word=np.repeat(np.arange(len(lengths)), lengths),
        words=np.array(words),
        fold=folds,
        feature_names=[f"pixel_{i}_{j}" for i in range(16) for j in range(8)],
        DESCR=OCR_LETTERS.text,
    )


@ORL_FACES.loader
def load_orl_faces() -> Bunch:
    """Load the ORL faces.

    :func:`sklearn.datasets.fetch_olivetti_faces` downloads the same photographs in 64 × 64 pixels.

    Returns
    -------
    bunch : Bunch
        ``images`` of shape (400, 112, 92), grey levels from 0 to 255; ``data``, the same images
        flattened; ``target``, the person, from 1 to 40; ``shot``, the number of the image of that
        person, from 1 to 10; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_orl_faces
    >>> load_orl_faces().images.shape
    (400, 112, 92)
    """
    file = ORL_FACES.arrays("orl_faces.npz")
    images, subject, shot = file["images"], file["subject"], file["shot"]
    return Bunch(
        data=images.reshape(len(images), -1),
        target=subject.astype(np.int64),
        images=images,
        shot=shot.astype(np.int64),
        DESCR=ORL_FACES.text,
    )
