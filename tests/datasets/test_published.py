"""The published files, where available: their counts match the publications."""

import numpy as np
import pytest

from okforest import datasets


@pytest.fixture(autouse=True)
def _published(data_folder):
    """Skip the tests unless OKFOREST_DATA names a folder."""


def load(fetch, *args):
    try:
        return fetch(*args)
    except OSError as error:
        pytest.skip(str(error))


def counts(bunch):
    return {part: int((bunch.split == part).sum()) for part in dict.fromkeys(bunch.split.tolist())}


def test_usps():
    usps = load(datasets.fetch_usps)
    assert usps.data.shape == (9298, 256)
    assert counts(usps) == {"train": 7291, "test": 2007}
    assert usps.data.min() == -1
    assert usps.data.max() == 1
    assert sorted(set(usps.target)) == list(range(10))


def test_images():
    letters = load(datasets.load_ocr_letters)
    assert letters.data.shape == (52152, 128)
    assert len(letters.words) == 6877
    assert len(set(letters.target)) == 26
    assert len(set(letters.fold)) == 10
    assert sum(map(len, letters.words)) == 52152
    faces = load(datasets.load_orl_faces)
    assert faces.images.shape == (400, 112, 92)
    assert np.bincount(faces.target).tolist() == [0] + [10] * 40


def test_networks():
    yeast = load(datasets.load_yeast_ppi)
    assert yeast.data.shape == (984, 77 + 79 + 24)
    assert yeast.graph.sum() == 2 * 2438
    parts = {name: yeast.data[:, columns] for name, columns in yeast.feature_groups.items()}
    assert np.isnan(parts["spellman"]).mean() == pytest.approx(0.05, abs=0.001)
    assert np.isfinite(parts["eisen"]).any(axis=1).sum() == 654
    assert parts["localization"][:, 1:].any(axis=1).sum() == 838
    kegg = load(datasets.load_yeast_kegg150)
    assert kegg.graph.shape == kegg.kernel.shape == (150, 150)
    assert kegg.graph.sum() == 2 * 168
    assert np.linalg.eigvalsh(kegg.kernel)[0] > 0
    cora = load(datasets.load_cora)
    assert cora.data.shape == (2708, 1433)
    assert len(cora.citations) == 5429
    assert cora.graph.sum() == 2 * 5278
    assert len(set(cora.target)) == 7


@pytest.mark.parametrize(
    ("name", "n_targets", "n_drugs", "n_links"), [("nr", 26, 54, 90), ("gpcr", 95, 223, 635)]
)
def test_drug_target(name, n_targets, n_drugs, n_links):
    drugs = load(datasets.load_drug_target, name)
    assert drugs.interactions.shape == (n_targets, n_drugs)
    assert drugs.interactions.sum() == n_links
    assert np.linalg.eigvalsh(drugs.target_similarity)[0] > 0
    np.testing.assert_array_equal(drugs.drug_similarity, drugs.drug_similarity.T)


@pytest.mark.parametrize(
    ("name", "n", "p", "n_labels", "mean"),
    [
        ("yeast", 2417, 103, 14, 4.237),
        ("emotions", 593, 72, 6, 1.868),
        ("bibtex", 7395, 1836, 159, 2.402),
    ],
)
def test_multilabel(name, n, p, n_labels, mean):
    bunch = load(datasets.load_multilabel, name)
    assert bunch.data.shape == (n, p) == (n, len(bunch.feature_names))
    assert bunch.target.shape == (n, n_labels) == (n, len(bunch.target_names))
    assert bunch.target.sum(axis=1).mean() == pytest.approx(mean, abs=0.0005)
    if name == "bibtex":
        assert counts(bunch) == {"train": 4880, "test": 2515}
        assert all(tag.startswith("TAG_") for tag in bunch.target_names)
    if name == "yeast":
        assert counts(bunch) == {"train": 1500, "test": 917}


@pytest.mark.parametrize(
    ("name", "p", "train", "valid", "test"),
    [("cellcycle", 77, 1628, 848, 1281), ("derisi", 63, 1608, 842, 1275)],
)
def test_hierarchical(name, p, train, valid, test):
    bunch = load(datasets.load_hierarchical, name)
    assert bunch.data.shape == (train + valid + test, p)
    assert counts(bunch) == {"train": train, "valid": valid, "test": test}
    assert bunch.target.shape[1] == 499
    inner = bunch.parents >= 0
    assert (bunch.target[:, inner] <= bunch.target[:, bunch.parents[inner]]).all()


@pytest.mark.parametrize(
    ("name", "n", "p", "n_labels"),
    [
        ("iris", 150, 4, 3),
        ("glass", 214, 9, 6),
        ("wine", 178, 13, 3),
        ("vehicle", 846, 18, 4),
        ("vowel", 528, 10, 11),
        ("stock", 950, 5, 5),
        ("wisconsin", 194, 16, 16),
        ("cold", 2465, 24, 4),
        ("heat", 2465, 24, 6),
        ("spo", 2465, 24, 11),
    ],
)
def test_label_ranking(name, n, p, n_labels):
    bunch = load(datasets.load_label_ranking, name)
    assert bunch.data.shape == (n, p)
    assert bunch.target.shape == (n, n_labels)
    assert (np.sort(bunch.target, axis=1) == np.arange(1, n_labels + 1)).all()


@pytest.mark.parametrize(
    ("name", "train", "test", "length", "n_classes"),
    [
        ("GunPoint", 50, 150, 150, 2),
        ("ItalyPowerDemand", 67, 1029, 24, 2),
        ("Trace", 100, 100, 275, 4),
    ],
)
def test_ucr(name, train, test, length, n_classes):
    bunch = load(datasets.load_ucr, name)
    assert bunch.data.shape == (train + test, length)
    assert counts(bunch) == {"train": train, "test": test}
    assert len(set(bunch.target)) == n_classes


def test_sequences_and_curves():
    dna = load(datasets.fetch_promoters)
    assert dna.data.shape == (106, 57)
    assert (dna.target == "+").sum() == 53
    assert set("".join(dna.sequences)) == set("acgt")
    meat = load(datasets.load_tecator)
    assert meat.data.shape == (215, 100)
    assert meat.target.shape == (215, 3)
