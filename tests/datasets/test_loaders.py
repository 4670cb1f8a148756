"""Every loader, on tiny files in the published format."""

import sys
from urllib.error import URLError

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest import datasets


def dense(bunch):
    return bunch.graph.toarray().tolist()


def test_usps(write):
    write("usps/zip.train.gz", "6.0000 " + " ".join(["-1.0000"] * 255) + " 0.5000 \n")
    write("usps/zip.test.gz", "\n".join(f"{d} " + " ".join(["0.25"] * 256) for d in (3, 9)))
    with pytest.warns(UserWarning, match=r"zip.(train|test).gz differs from the published file"):
        usps = datasets.fetch_usps()
    assert usps.data.shape == (3, 256)
    assert usps.images.shape == (3, 16, 16)
    assert usps.images[0, 15, 15] == 0.5
    assert usps.target.tolist() == [6, 3, 9]
    assert usps.split.tolist() == ["train", "test", "test"]
    assert "LeCun" in usps.DESCR


def test_ocr_letters(write):
    pixels = np.random.default_rng(0).integers(0, 2, size=(5, 128), dtype=np.uint8)
    write(
        "ocr_letters/letters.npz",
        pixels_packed=np.packbits(pixels, axis=1),
        labels=np.array([0, 25, 2, 2, 1], dtype=np.uint8),
        word_length=np.array([2, 3], dtype=np.uint8),
        folds=np.array([0, 9], dtype=np.uint8),
        n_pixels=np.array(128),
    )
    letters = datasets.load_ocr_letters()
    np.testing.assert_array_equal(letters.data, pixels)
    assert letters.target.tolist() == list("azccb")
    assert letters.words.tolist() == ["az", "ccb"]
    assert letters.word.tolist() == [0, 0, 1, 1, 1]
    assert letters.fold.tolist() == [0, 9]


def test_orl_faces(write):
    images = np.random.default_rng(0).integers(0, 256, size=(3, 112, 92), dtype=np.uint8)
    subject, shot = np.array([1, 1, 40], dtype=np.uint8), np.array([1, 10, 2], dtype=np.uint8)
    write("orl_faces/orl_faces.npz", images=images, subject=subject, shot=shot)
    faces = datasets.load_orl_faces()
    np.testing.assert_array_equal(faces.images, images)
    np.testing.assert_array_equal(faces.data, images.reshape(3, -1))
    assert faces.target.tolist() == [1, 1, 40]
    assert faces.shot.tolist() == [1, 10, 2]


@pytest.fixture
def yeast_ppi(write):
    write("yeast_ppi/nodes.csv.gz", "orf,mips_class\nY1,P\nY2,\nY3,G\n")
    write("yeast_ppi/edges.csv.gz", "orf_a,orf_b\nY1,Y3\nY3,Y2\n")
    write("yeast_ppi/expression_spellman.csv.gz", "orf,a,b\nY1,0.5,\nY2,1,-1\nY3,2,3\n")
    write("yeast_ppi/expression_eisen.csv.gz", "orf,a\nY1,\nY2,4\nY3,\n")
    write("yeast_ppi/localization.csv.gz", "orf,gfp_visualized,ER\nY1,1,1\nY2,0,0\nY3,1,0\n")


def test_yeast_ppi(yeast_ppi):
    yeast = datasets.load_yeast_ppi()
    nan = np.nan
    expected = [[0.5, nan, nan, 1, 1], [1, -1, 4, 0, 0], [2, 3, nan, 1, 0]]
    np.testing.assert_array_equal(yeast.data, expected)
    assert yeast.data.dtype == np.float32
    assert yeast.feature_groups == {
        "spellman": slice(0, 2),
        "eisen": slice(2, 3),
        "localization": slice(3, 5),
    }
    assert yeast.feature_names[2:4] == ["eisen: a", "localization: gfp_visualized"]
    assert dense(yeast) == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert yeast.names.tolist() == ["Y1", "Y2", "Y3"]
    assert yeast.mips_class.tolist() == ["P", "", "G"]


def test_yeast_ppi_as_a_frame(yeast_ppi, monkeypatch):
    """The frame has the names; without pandas, an error is raised."""
    frame = datasets.load_yeast_ppi(as_frame=True).data
    assert frame.loc["Y2", "eisen: a"] == 4
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=True needs pandas"):
        datasets.load_yeast_ppi(as_frame=True)


def test_files_that_do_not_fit(yeast_ppi, write):
    """Files whose rows have different orders are refused."""
    write("yeast_ppi/expression_eisen.csv.gz", "orf,a\nY2,4\nY1,\nY3,\n")
    with pytest.raises(ValueError, match="names of rows and columns differ between the files"):
        datasets.load_yeast_ppi()


def test_yeast_kegg150(write):
    write("yeast_kegg150/adjacency.csv.gz", "orf,Y1,Y2\nY1,0,1\nY2,1,0\n")
    write("yeast_kegg150/kernel.csv.gz", "orf,Y1,Y2\nY1,1,0.25\nY2,0.25,1\n")
    yeast = datasets.load_yeast_kegg150()
    assert dense(yeast) == [[0, 1], [1, 0]]
    assert yeast.kernel.tolist() == [[1, 0.25], [0.25, 1]]
    assert yeast.names.tolist() == ["Y1", "Y2"]


def test_drug_target(write):
    write("drug_target/nr_admat_dgc.txt.gz", "\tD1\tD2\tD3\nhsa1\t0\t1\t0\nhsa2\t1\t1\t0\n")
    write(
        "drug_target/nr_simmat_dc.txt.gz",
        "\tD1\tD2\tD3\nD1\t1\t0.2\t0\nD2\t0.4\t1\t0\nD3\t0\t0\t1\n",
    )
    write("drug_target/nr_simmat_dg.txt.gz", "\thsa1\thsa2\nhsa1\t1\t0.5\nhsa2\t0.5\t1\n")
    drugs = datasets.load_drug_target("nr")
    assert drugs.interactions.tolist() == [[0, 1, 0], [1, 1, 0]]
    np.testing.assert_allclose(drugs.drug_similarity, [[1, 0.3, 0], [0.3, 1, 0], [0, 0, 1]])
    assert drugs.target_similarity.tolist() == [[1, 0.5], [0.5, 1]]
    assert drugs.drug_names.tolist() == ["D1", "D2", "D3"]
    assert drugs.target_names.tolist() == ["hsa1", "hsa2"]
    with pytest.raises(ValueError, match="name='ic' is unknown; use 'nr' or 'gpcr'"):
        datasets.load_drug_target("ic")


def test_cora(write):
    write(
        "cora/cora.npz",
        source=np.array([0, 1, 2], dtype=np.int32),
        target=np.array([1, 0, 0], dtype=np.int32),
        attr_indices=np.array([3, 0], dtype=np.int32),
        attr_indptr=np.array([0, 1, 1, 2], dtype=np.int32),
        n_attributes=np.array(4),
        labels=np.array([6, 0, 1], dtype=np.int16),
    )
    cora = datasets.load_cora()
    assert dense(cora) == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert cora.data.toarray().tolist() == [[0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
    assert cora.target.tolist() == [6, 0, 1]
    assert cora.citations.tolist() == [[0, 1], [1, 0], [2, 0]]


def arff(names, rows):
    attributes = "\n".join(f"@attribute {name}" for name in names)
    return f"@relation r\n\n{attributes}\n\n@data\n{rows}\n"


def test_multilabel(write):
    """Labels come first in yeast and last in the others."""
    labels = [f"Class{i} {{0,1}}" for i in range(14)]
    zeros = ",".join(["0"] * 13)
    rows = f"1,{zeros},0.5,0.25\n0,{zeros},-1,2"
    write("multilabel/yeast.arff.gz", arff([*labels, "A numeric", "B numeric"], rows))
    yeast = datasets.load_multilabel("yeast")
    assert yeast.data.tolist() == [[0.5, 0.25], [-1, 2]]
    assert yeast.target.sum(axis=0).tolist() == [1] + [0] * 13
    assert yeast.feature_names == ["A", "B"]
    assert yeast.target_names[:2] == ["Class0", "Class1"]
    assert yeast.split.tolist() == ["train", "train"]

    rows = "0.5," + ",".join("100101")
    write("multilabel/emotions.arff.gz", arff(["A numeric", *labels[:6]], rows))
    emotions = datasets.load_multilabel("emotions")
    assert emotions.data.tolist() == [[0.5]]
    assert emotions.target.tolist() == [[1, 0, 0, 1, 0, 1]]
    assert "split" not in emotions

    names = ["w1 {0,1}", "w2 {0,1}", *(f"TAG_{i} {{0,1}}" for i in range(159))]
    write("multilabel/bibtex-train.arff.gz", arff(names, "{1 1,2 1}\n{0 1,160 1}"))
    write("multilabel/bibtex-test.arff.gz", arff(names, "{}"))
    bibtex = datasets.load_multilabel("bibtex")
    assert sp.issparse(bibtex.data)
    assert bibtex.data.toarray().tolist() == [[0, 1], [1, 0], [0, 0]]
    assert np.argwhere(bibtex.target).tolist() == [[0, 0], [1, 158]]
    assert bibtex.split.tolist() == ["train", "train", "test"]
    with pytest.raises(ValueError, match="name='scene' is unknown; use one of yeast, emotions"):
        datasets.load_multilabel("scene")


def test_hierarchical(write):
    """A gene belongs to its classes and their ancestors."""
    names = ["a numeric", "class hierarchical 01,01/02,01/02/03,10/01"]
    for split, rows in (
        ("train", "?,01/02/03@10/01"),
        ("valid", "2,01"),
        ("test", "3,01/02\n4,01"),
    ):
        write(f"hmc/derisi_FUN.{split}.arff.gz", arff(names, rows))
    genes = datasets.load_hierarchical("derisi")
    np.testing.assert_array_equal(genes.data, [[np.nan], [2], [3], [4]])
    assert genes.target_names == ["01", "01/02", "01/02/03", "10", "10/01"]
    assert genes.parents.tolist() == [-1, 0, 1, -1, 3]
    expected = [[1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert genes.target.tolist() == expected
    assert genes.labels.tolist() == ["01/02/03@10/01", "01", "01/02", "01"]
    assert genes.split.tolist() == ["train", "valid", "test", "test"]
    with pytest.raises(ValueError, match="use one of cellcycle, derisi"):
        datasets.load_hierarchical("seq")


def test_label_ranking(write):
    """Labels are sorted by number, and rank 1 is the most preferred."""
    write("label_ranking/spo.csv.gz", "0.5,  -1,L10>L2>L1\n1,2,L1>L2>L10\n")
    spo = datasets.load_label_ranking("spo")
    assert spo.data.tolist() == [[0.5, -1], [1, 2]]
    assert spo.target_names == ["L1", "L2", "L10"]
    assert spo.target.tolist() == [[3, 2, 1], [1, 2, 3]]
    with pytest.raises(ValueError, match="name='spooky' is unknown; use one of iris"):
        datasets.load_label_ranking("spooky")


@pytest.mark.parametrize("ending", [".ts", ".ts.gz", ".tsv", ".txt", ".txt.gz"])
def test_ucr(write, ending):
    """The formats of the archive, compressed or not."""
    if ending.startswith(".ts") and ending != ".tsv":
        header = "# words: and more\n@problemName P\n@classLabel true 1 2\n@data\n"
        train, test = header + "1.5,-2:1\n0,?:2\n", header + "3,4:1\n"
    else:
        train = "  1.0000000e+000  1.5 -2\n  2.0000000e+000 0 NaN\n"
        test = "1.0 3 4\n".replace(" ", "\t" if ending == ".tsv" else " ")
    write(f"ucr/P_TRAIN{ending}", train)
    write(f"ucr/P_TEST{ending}", test)
    series = datasets.load_ucr("P")
    np.testing.assert_array_equal(series.data, [[1.5, -2], [0, np.nan], [3, 4]])
    assert series.target.tolist() == ["1", "2", "1"]
    assert series.split.tolist() == ["train", "train", "test"]


def test_ucr_errors(write):
    """Different lengths and several variables are refused; missing files are named."""
    for rows in ("1,2:1\n1:1\n", "1,2:3,4:1\n"):
        write("ucr/P_TRAIN.ts", "@data\n" + rows)
        with pytest.raises(ValueError, match="P_TRAIN has series of different lengths"):
            datasets.load_ucr("P")
    with pytest.raises(FileNotFoundError, match=r"no file ucr/Q_TRAIN.ts.gz or .*Q_TRAIN.txt "):
        datasets.load_ucr("Q")


def test_promoters(write):
    write("dna/promoters.csv.gz", "class,instance,p-2,p-1,p1\n+,S10,t,a,c\n-,867,g,g,a\n")
    dna = datasets.fetch_promoters()
    assert dna.sequences.tolist() == ["tac", "gga"]
    assert dna.data.tolist() == [["t", "a", "c"], ["g", "g", "a"]]
    assert dna.target.tolist() == ["+", "-"]
    assert dna.names.tolist() == ["S10", "867"]
    assert dna.feature_names == ["p-2", "p-1", "p1"]


@pytest.mark.parametrize("named", [True, False])
def test_promoters_of_openml(folder, monkeypatch, named):
    """Without a file they come from OpenML, with the names of the sequences if it has them."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = {"class": ["+", "-"], "instance": ["S10", "867"], "p-1": ["a", "g"], "p1": ["c", "a"]}
    frame = pandas.DataFrame(table, dtype="category")
    asked = []

    def fetch(name, version, as_frame):
        asked.append((name, version, as_frame))
        return Bunch(frame=frame if named else frame.drop(columns="instance"))

    monkeypatch.setattr("okforest.datasets.series.fetch_openml", fetch)
    dna = datasets.fetch_promoters()
    assert asked == [("molecular-biology_promoters", 1, True)]
    assert dna.sequences.tolist() == ["ac", "ga"]
    assert dna.target.tolist() == ["+", "-"]
    assert dna.names.tolist() == (["S10", "867"] if named else ["0", "1"])
    assert dna.feature_names == ["p-1", "p1"]
    assert dna.files == []


def test_promoters_without_a_network(folder, monkeypatch):
    """The error says where to put the file by hand."""

    def fetch(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr("okforest.datasets.series.fetch_openml", fetch)
    message = r"OpenML failed: .*no network.* no file dna/promoters.csv.gz .*OKFOREST_DATA"
    with pytest.raises(OSError, match=message):
        datasets.fetch_promoters()


def test_tecator(write):
    write("tecator/tecator.csv.gz", "moisture,fat,protein,abs_1,abs_2\n60.5,22.5,16.7,2.6,2.7\n")
    meat = datasets.load_tecator()
    assert meat.data.tolist() == [[2.6, 2.7]]
    assert meat.target.tolist() == [[60.5, 22.5, 16.7]]
    assert meat.target_names == ["moisture", "fat", "protein"]


@pytest.mark.parametrize("seed", range(3))
def test_friedman1(seed):
    """The noise around the formula has mean 0 and variance 1."""
    X, y = datasets.make_friedman1(20_000, seed=seed)
    assert X.shape == (20_000, 10)
    clean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    noise = y - clean - 10 * X[:, 3] - 5 * X[:, 4]
    assert noise.mean() == pytest.approx(0.0, abs=0.05)
    assert noise.std() == pytest.approx(1.0, abs=0.05)
    np.testing.assert_array_equal(X, datasets.make_friedman1(20_000, seed=seed)[0])
