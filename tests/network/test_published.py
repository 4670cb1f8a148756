"""Published networks, if their files are available."""

import numpy as np
import pytest

from okforest import OKExtraTrees
from okforest.datasets import load_drug_target, load_yeast_ppi
from okforest.network import BipartiteCompletion, NetworkCompletion, cross_validate_bipartite
from okforest.network.evaluation import folds_of, judge, score_fold
from okforest.network.graphs import Graph


def load(fetch, *args):
    try:
        return fetch(*args)
    except OSError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_yeast_proteins():
    """Three of the ten folds of docs/results_networks.md, where the AUC is 0.90 ± 0.02."""
    data = load(load_yeast_ppi)
    forest = OKExtraTrees(50, max_features=0.25, min_samples_split=5, random_state=0)
    folds = folds_of(984, 10)[:3]
    graph = Graph(data.graph, data.names)
    pairs = [score_fold(NetworkCompletion(forest), data.data, graph, fold) for fold in folds]
    assert judge(fold["known-new"] for fold in pairs).auc.mean() > 0.87
    assert judge(fold["new-new"] for fold in pairs).auc.mean() > 0.78


@pytest.mark.usefixtures("data_folder")
def test_drugs_and_targets():
    """New drugs and new targets of nuclear receptors, predicted from similarities."""
    data = load(load_drug_target, "nr")
    model = BipartiteCompletion(OKExtraTrees(50, min_samples_split=5, random_state=0))
    for setting, least in (("new rows", 0.77), ("new columns", 0.6)):
        scores = cross_validate_bipartite(
            model,
            data.drug_similarity,
            data.target_similarity,
            data.interactions.T,
            setting,
            similarities=True,
        )
        assert np.nanmean(scores.auc) > least
