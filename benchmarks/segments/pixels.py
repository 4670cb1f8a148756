"""Segmentation of texture images, beside a forest on features of single pixels.

40 images of `make_textures` for training and 40 for testing, 64 × 64 pixels, four textures. The
per-pixel forest has for every pixel the features of scikit-image's `multiscale_basic_features`,
computed here with SciPy: the smoothed image, the size of its gradient, and the eigenvalues of its
Hessian matrix, at the scales 0.5, 1, 2, 4, 8 and 16; or the 15 × 15 pixels around it. The sides of
subwindows and their number were chosen on images of another seed. Figures are means over seeds,
with half of their range; times are CPU times.
"""

import argparse

import numpy as np
from benchmarks import machine
from benchmarks.segments.measure import SEEDS, report, spread, timed
from scipy.ndimage import gaussian_filter
from sklearn.ensemble import ExtraTreesClassifier

from okforest import OKExtraTrees
from okforest.datasets import make_textures
from okforest.metrics import boundary_f1, intersection_over_union
from okforest.segments import PixelClassifier, RandomSubwindows

SCALES = (0.5, 1, 2, 4, 8, 16)
PATCH = 15
PIXELS_PER_IMAGE = 500  # per-pixel forests are trained on a sample


def multiscale(image):
    """Return features of each pixel, shape (height * width, n_features)."""
    image = image / 255.0
    features = []
    for scale in SCALES:
        smooth = gaussian_filter(image, scale)
        rows, cols = np.gradient(smooth)
        (rr, rc), (_, cc) = np.gradient(rows), np.gradient(cols)
        half, root = (rr + cc) / 2, np.sqrt(((rr - cc) / 2) ** 2 + rc**2)
        features += [smooth, np.hypot(rows, cols), half + root, half - root]
    return np.stack(features, axis=2).reshape(image.size, -1)


def patches(image):
    """Return the pixels around each pixel."""
    padded = np.pad(image, PATCH // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (PATCH, PATCH))
    return windows.reshape(image.size, -1)


def per_pixel(features, n_trees, seed, train, test):
    """Return the label maps that a forest on features of pixels predicts."""
    (images, maps), rng = train, np.random.default_rng(seed)
    chosen = [rng.choice(image.size, PIXELS_PER_IMAGE, replace=False) for image in images]
    X = np.concatenate([features(image)[at] for image, at in zip(images, chosen, strict=True)])
    y = np.concatenate([labels.ravel()[at] for labels, at in zip(maps, chosen, strict=True)])
    forest = ExtraTreesClassifier(n_trees, random_state=seed).fit(X, y)
    return np.array([forest.predict(features(image)).reshape(image.shape) for image in test])


def by_subwindows(target, n_trees, seed, train, test):
    """Return the label maps that subwindows vote for."""
    segmenter = RandomSubwindows(PIXELS_PER_IMAGE, side_range=(0.15, 0.25))
    forest = OKExtraTrees(n_trees, search_rank=0.95)
    model = PixelClassifier(segmenter, forest, target=target, n_votes=100, random_state=seed)
    return model.fit(*train).predict(test)


METHODS = {
    "ExtraTrees, 100 trees, multiscale features": lambda *data: per_pixel(multiscale, 100, *data),
    "ExtraTrees, 10 trees, 15 × 15 pixels": lambda *data: per_pixel(patches, 10, *data),
    "ExtraTrees, 100 trees, 15 × 15 pixels": lambda *data: per_pixel(patches, 100, *data),
    'PixelClassifier, target="center", 10 trees': lambda *data: by_subwindows("center", 10, *data),
    'PixelClassifier, target="map", 10 trees': lambda *data: by_subwindows("map", 10, *data),
    'PixelClassifier, target="map", 100 trees': lambda *data: by_subwindows("map", 100, *data),
}


def main() -> None:
    """Print the table."""
    machine.fix_threads()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=40)
    n = parser.parse_args().images
    rows = []
    for method, run in METHODS.items():
        overlap, boundary, times = [], [], []
        for seed in SEEDS:
            images, maps = make_textures(2 * n, seed=seed)
            predicted, seconds = timed(
                lambda run=run, seed=seed, images=images, maps=maps: run(
                    seed, (images[:n], maps[:n]), images[n:]
                )
            )
            overlap.append(intersection_over_union(maps[n:], predicted))
            boundary.append(boundary_f1(maps[n:], predicted))
            times.append(seconds)
        rows.append([method, spread(overlap, 3), spread(boundary, 3), f"{np.mean(times):.1f}"])
        print(rows[-1], flush=True)
    header = ["method", "intersection over union", "boundary F1", "time, s"]
    report("Segmentation of textures", header, rows)


if __name__ == "__main__":
    main()
