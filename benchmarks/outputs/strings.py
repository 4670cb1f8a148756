"""Strings put together from k-mers: how often exactly, from known and from predicted counts.

Known counts: the share of the different handwritten words, and of the promoters of E. coli, that
are the sequence which `EulerianPath` finds from their own k-mers. Predicted counts: words of up to
eight letters are predicted from the pixels of their letters, 1,500 for training and 500 for
testing, by extra-trees with the spectrum kernel. No setting was tuned.
"""

import numpy as np
from benchmarks.outputs.measure import arguments, report

from okforest import OKExtraTrees
from okforest.datasets import fetch_promoters, load_ocr_letters
from okforest.decode import EulerianPath
from okforest.kernels import Normalized, Spectrum
from okforest.weights import Span, as_weights

LONGEST = 8
SIDE = 128  # pixels of a letter


def words_and_pixels():
    """Return words as text, and the pixels of their letters, zero after the end."""
    letters = load_ocr_letters()
    ends = np.cumsum([len(word) for word in letters.words])
    pixels = []
    for word, end in zip(letters.words, ends, strict=True):
        start = end - len(word)
        image = np.zeros(LONGEST * SIDE, dtype=np.float32)
        shown = np.asarray(letters.data[start : min(end, start + LONGEST)], dtype=np.float32)
        image[: shown.size] = shown.reshape(-1)
        pixels.append(image)
    return letters.words.astype(object), np.array(pixels)


def reconstructed(sequences, k):
    """Return the share of sequences that their own k-mers lead back to."""
    y = np.array(sorted(set(sequences)), dtype=object)
    span = Span(Spectrum(k, boundaries=True).resolve(y), y)
    found = EulerianPath().decode(as_weights(np.eye(len(y))), span)
    return np.mean(found == y)


def main():
    """Print two tables."""
    options = arguments("words", "promoters")
    words, pixels = words_and_pixels()
    promoters = fetch_promoters().sequences
    rows = [
        [k, *(f"{100 * reconstructed(list(data), k):.1f}" for data in (set(words), promoters))]
        for k in (2, 3, 4, 5, 6, 8)
    ]
    report("Exact reconstruction from k-mers, per cent", ["k", "words", "promoters"], rows)

    n_trees = max(3, int(100 * options.scale))
    short = np.flatnonzero([len(word) <= LONGEST for word in words])
    chosen = np.random.default_rng(0).permutation(short)[:2000]
    train, test = chosen[:1500], chosen[1500:]
    unseen = ~np.isin(words[test], words[train])
    rows = []
    for kernel, decoders in (
        (Spectrum(2, boundaries=True), ("training_set", "eulerian_path")),
        (Spectrum(3, boundaries=True), ("training_set", "eulerian_path")),
        (Normalized(Spectrum(3, boundaries=True)), ("training_set",)),
    ):
        model = OKExtraTrees(n_trees, kernel=kernel, random_state=0)
        model.fit(pixels[train], list(words[train]))
        for decoder in decoders:
            found = model.set_params(decoder=decoder).predict(pixels[test])
            exact = found == words[test]
            rows.append([f"{kernel}", decoder, f"{100 * exact.mean():.1f}"])
    title = f"Handwritten words predicted exactly, per cent ({100 * unseen.mean():.1f} % unseen)"
    report(title, ["kernel", "decoder", "exact"], rows)


if __name__ == "__main__":
    main()
