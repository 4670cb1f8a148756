"""Descriptions of parameters and attributes that several models share."""

from inspect import cleandoc, signature
from typing import TypeVar

T = TypeVar("T", bound=type)

PARAMETERS = {
    "n_estimators": """int, default=100
        Number of trees, M in the papers.""",
    "kernel": """OutputKernel, str or callable, default="linear"
        How similar two outputs are: an object of :mod:`okforest.kernels`, the name of one
        ("linear", "rbf", "laplacian", "polynomial", "mahalanobis", "dirac", "survival", "hamming",
        "jaccard", "dice", "kendall", "mallows", "spearman"), or a function of two lists of outputs
        that returns their Gram matrix.""",
    "splitter": """{"best", "random"}, default="best"
        Whether to try every threshold of a feature, or one random threshold.""",
    "criterion": """{"variance", "frobenius"}, default="variance"
        What a split reduces: the variance of the outputs in the leaves, or the squared error of
        the kernel that the tree predicts between training inputs (the mean of the output kernel
        over their leaves). "frobenius" needs the Gram matrix and, in every thread, numbers for
        each row and leaf of a tree. It costs time proportional to the number of leaves at every
        split, depends on the order of growth, and does not split categorical features.
        ``min_impurity_decrease`` then refers to that error; importances and pruning always refer
        to the variance.""",
    "max_features": """int, float, "sqrt", "log2" or None, default={default}
        Number of candidate features at a node, K in the papers: a number, a fraction of all, or all
        (None). More are tried until at least one can split the node. As in scikit-learn, features
        that are constant in the node are among them, unless ``ignore_constant=True``.""",
    "ignore_constant": """bool, default=False
        Whether ``max_features`` counts only features that are not constant in the node, as in the
        extra-trees of the papers. This matters where many features are constant in small nodes,
        as pixels are: predictions may be better, and trees take up to twice as long to grow.""",
    "max_depth": """int, optional
        Maximum depth of a tree.""",
    "min_samples_split": """int or float, default=2
        Minimum number of samples (or fraction of all) in a node that is split, n_min in the papers.
        A row counts as its weight, and as at least one, unlike in scikit-learn, where it counts
        once whatever its weight; a row drawn twice for a tree counts twice.""",
    "min_samples_leaf": """int, float or "auto", default="auto"
        Minimum number of samples (or fraction of all) in a leaf, counted in the same way: a row of
        weight 10 may be a leaf with ``min_samples_leaf=5``. scikit-learn counts rows here, whatever
        their weights. okforest counts weights, since only then a row of weight 3 equals three
        copies of it, which scikit-learn's own check of equivalent sample weights requires. "auto"
        takes the kernel's own choice, which is 10 for "survival" and 1 for all others.""",
    "max_leaf_nodes": """int, optional
        Maximum number of leaves of a tree. If set, the split with the largest gain comes next.""",
    "min_impurity_decrease": """float, default=0.0
        A node is split only if this reduces the variance of the outputs (summed over components
        if they are vectors), weighted by the node's share of all samples, by at least this
        amount.""",
    "ccp_alpha": """float, default=0.0
        Branches that reduce the variance of the outputs by at most this amount per leaf are
        pruned; see :func:`okforest.select_ccp_alpha`.""",
    "bootstrap": """bool, default={default}
        Whether each tree is grown on rows drawn with replacement, with probability proportional
        to ``sample_weight``, or on all rows.""",
    "max_samples": """int or float, optional
        Number of rows drawn for each tree, as in scikit-learn. By default it is the number of rows
        of positive weight. An int is used as it is; a float is multiplied by the number of rows
        or, with ``sample_weight``, by the sum of the weights. Needs ``bootstrap=True``.""",
    "oob_score": """bool, default=False
        Whether to estimate weights, predictions and score of the training rows from the trees that
        were not grown on them. Needs ``bootstrap=True``.""",
    "categorical_features": """array-like, "from_dtype" or None, default="from_dtype"
        Names, indices or a mask of the categorical features; by default the categorical and text
        columns of a frame.""",
    "categorical_encoding": """{"auto", "subsets", "target"}, default="auto"
        How categories are split. "subsets" splits them into two sets; a feature may have up to
        1,024 categories, and categories not seen in training are treated as missing. "target" turns
        them into at most four numbers, the coordinates of the mean outputs of their rows in the
        directions in which these differ most, shrunk towards the mean of all outputs. A new
        category has the coordinates of the mean of all outputs. "auto" is "target" for features of
        more than 10 categories, and "subsets" for others.""",
    "embedding": """str, default="auto"
        The form of the outputs from which trees are grown. "features", "gram" and "factor" are
        explicit features, the Gram matrix and its exact factor; they give the same trees, and
        "auto" takes the cheapest. "cholesky", "nystrom" and "fourier" are approximate factors that
        need no Gram matrix, for many outputs of a kernel without explicit features: incomplete
        Cholesky, random landmarks, and random Fourier features (RBF and Laplacian kernels only).
        Predictions always use the exact kernel.""",
    "embedding_rank": """int, optional
        Maximum number of columns of an approximate embedding; 256 by default.""",
    "search_rank": """int, float, "auto" or None, default="auto"
        Number of principal directions of the outputs in which splits are searched; leaves and
        predictions stay exact. None searches all. A float between 0 and 1 takes the smallest of 16,
        32, 64 and 128 directions (at most an eighth of the rows) that keeps this share of the
        variance, and all if none does. "auto" searches all directions, except above 2,000 rows, if
        ``embedding="auto"`` and the kernel has no explicit features: then it takes 64 or 128 from
        a Nyström embedding without the Gram matrix, if they keep 80 % of the variance. Node
        variances then refer to these directions, a fraction ``search_variance_`` of the whole, and
        so do importances, pruning, ``min_impurity_decrease`` and the test for pure nodes.""",
    "decoder": """Decoder or str, default="auto"
        How weights are turned into outputs: an object of :mod:`okforest.decode` or the name of one
        ("mean", "majority", "training_set", "support", "threshold", "mode", "expected_f1", "borda",
        "kemeny" and others). "auto" takes the kernel's own choice: a closed form if there is one,
        else the nearest training output.""",
    "random_state": """int, RandomState instance or None, default=None
        The seed. The same seed gives the same model for any ``n_jobs``.""",
    "warm_start": """bool, default=False
        Whether :meth:`fit` keeps the existing trees and adds trees up to ``n_estimators``, on the
        same training set and with the same kernel, embedding and ``bootstrap``. If no other
        parameter has changed, the forest equals one grown in a single fit; those on the growth of
        trees, such as ``max_depth``, may change and apply to the new trees only.""",
    "n_jobs": """int, optional
        Number of threads for fitting and prediction; None is one, or the value of
        :class:`joblib.parallel_config`. As in scikit-learn, -1 stands for all cores, -2 for all but
        one and so on, but for at least one.""",
    "device": """{"cpu", "cuda", "auto"}, default="cpu"
        Where trees are grown. "cuda" takes the GPU, by CuPy, for numeric features; the trees are
        those of the CPU, up to near-ties. "auto" takes the GPU where it can, and warns where it
        cannot. With either, predictions are made on the GPU if there is one.""",
    "verbose": """int, default=0
        Whether to show a progress bar while fitting.""",
    "callback": """callable, optional
        Called about twenty times a second while fitting, with the number of trees grown so far. An
        exception that it raises stops the fit. Callbacks of scikit-learn 1.9 and later are set by
        ``set_callbacks``; every tree is a task of the fit.""",
    "n_neighbors": """int, default=5
        Number of neighbours.""",
    "weights": """{"uniform", "distance", "kernel"} or callable, default="uniform"
        Weights of the neighbours: equal, the inverse of their distance, the input kernel k(x, z),
        or a function that returns an array of weights from an array of distances.""",
    "metric": """str or callable, default="euclidean"
        The distance between inputs: a name that :class:`sklearn.neighbors.NearestNeighbors`
        accepts ("nan_euclidean" supports missing values), a function of two rows, or "precomputed"
        if X holds distances.""",
    "metric_params": """dict, optional
        Parameters of the metric, such as ``{"p": 3}`` for "minkowski".""",
    "input_kernel": """str, kernel or callable, default={default}
        The kernel on inputs: an object of :mod:`okforest.kernels`, such as ``RBF(sigma="median")``,
        whose parameters are searched as ``input_kernel__sigma``; an object of
        :mod:`sklearn.gaussian_process.kernels`; a name that
        :func:`sklearn.metrics.pairwise.pairwise_kernels` accepts, with the default parameters
        ("rbf" is exp(−‖x − z‖²/p) for p features); a function of two rows; or (for OKRidge)
        "precomputed" if X holds the values of the kernel. Of the objects, ``RBF(sigma)`` with a
        number, ``Polynomial()`` and ``Linear()`` take a sparse X.""",
    "alpha": """float, "loo" or array-like of floats, default=1.0
        The penalty. From a list, the one with the smallest leave-one-out loss in feature space is
        chosen. "loo" compares 21 penalties, from 1e-8 to 100 times the variance of the inputs in
        feature space (without an intercept, the mean of k(x, x)).""",
    "fit_intercept": """bool, default=True
        Whether to fit an intercept, which is not penalised. Without one, predictions shrink towards
        zero instead of the mean of the outputs.""",
    "n_components": """int, optional
        Number of principal directions of the training outputs in feature space that predictions
        are confined to, around the mean if there is an intercept; by default all.""",
    "n_landmarks": """int, optional
        Number of training rows, drawn at random, that inputs are compared with (the Nyström
        method). No square matrix of all training rows is then needed. By default all rows are
        used, and the solution is exact.""",
}

# Parameters of boosting only, and those with a different meaning there.
BOOSTING = {
    "n_estimators": """int, default=500
        Maximum number of rounds, M in the paper.""",
    "learning_rate": """float, default=0.05
        The factor ν of each round's prediction. Up to 2, the training loss never increases; smaller
        values need more rounds and usually predict better.""",
    "max_splits": """int, default=10
        Maximum number J of splits of a tree, which then has one leaf more.""",
    "max_bins": """int or None, default=255
        Maximum number of bins of a feature, from 2 to 255, between which best splits are searched.
        Bins are quantiles of the training rows (of 200,000 of them at most); a feature of fewer
        values has a bin for each, and its splits are exact. None searches every threshold, which
        takes many times longer and is rarely more accurate. Splits are exact in any case with fewer
        than 1,000 rows or 100 rows for each dimension of the outputs, with outputs of more than 32
        dimensions or a Gram matrix of them, sparse inputs, categories that are split into sets
        (``categorical_encoding``) and ``splitter="random"``.""",
    "growth": """{"variance", "gain"}, default="variance"
        Which node of a tree is split next: the one with the largest total variance, or the one
        whose split reduces it most.""",
    "min_samples_leaf": """int or float, default=1
        Minimum number of samples (or fraction of all) in a leaf. A row counts as its weight, and
        as at least one: a row of weight 3 equals three copies of it, as scikit-learn's check of
        equivalent sample weights requires.""",
    "subsample": """float, default=1.0
        The fraction of the rows that each round learns from, drawn without replacement. Below 1,
        ``oob_improvement_`` estimates how much each round helps the other rows.""",
    "base": """"tree" or estimator, default="tree"
        The base learner: "tree", to which the parameters on splits and leaves apply, or an
        estimator with ``fit(X, R)``, where R of shape (n, r) holds residuals as vectors, and
        ``predict_weights(X)`` of shape (n_new, n); its prediction is the product of these weights
        with R. Models of okforest with their default kernel, :class:`DirectionBase` and your own
        estimators can be used. If weights are not all one (with ``sample_weight``, ``subsample`` or
        ``n_iter_no_change``), ``fit(X, R, sample_weight=...)`` is called, and rows of weight zero
        must have no effect.""",
    "n_iter_no_change": """int, optional
        Stop when this number of rounds has not reduced the validation loss, measured in H, by more
        than ``tol``. By default there is no early stopping.""",
    "validation_fraction": """float, default=0.1
        The fraction of the rows that is held out for the validation loss.""",
    "tol": """float, default=0.0001
        The reduction of the validation loss that does not count, as a fraction of the loss of the
        mean.""",
    "embedding": PARAMETERS["embedding"].replace(
        "The form of the outputs from which trees are grown.",
        "The form of the residuals from which rounds learn.",
    ),
    "warm_start": """bool, default=False
        Whether :meth:`fit` keeps the existing rounds and adds rounds up to ``n_estimators``, on the
        same training set and with the same kernel. If no other parameter has changed, the model
        equals one fitted at once. After early stopping no rounds are added, unless
        ``n_iter_no_change`` is increased or ``tol`` decreased.""",
    "n_jobs": """int, optional
        Number of threads for prediction and for updating large residuals; -1 for all cores, -2 for
        all but one and so on. Rounds run one after the other, and a tree is grown by one
        thread.""",
    "device": """{"cpu", "cuda", "auto"}, default="cpu"
        Where rounds are run. "cuda" takes the GPU, by CuPy, for trees with random splits of numeric
        features, and residuals as vectors; the trees are those of the CPU, up to near-ties. "auto"
        takes the GPU where it can, and warns where it cannot. Predictions follow trees on the CPU;
        losses and nearest outputs are computed on the GPU if there is one.""",
    "callback": """callable, optional
        Called after each round with the number of rounds so far. An exception that it raises stops
        the fit. Callbacks of scikit-learn 1.9 and later are set by ``set_callbacks``; every round
        is a task of the fit.""",
}

SHARED_ATTRIBUTES = """kernel_ : OutputKernel
        The kernel, with parameters that depend on the outputs filled in.
    outputs_ : ndarray
        The training outputs.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (p,)
        Names of features seen during fit, if X has any.
    """

TREE_ATTRIBUTES = """trees_ : okforest.engine.Trees
        The trees, as plain arrays: ``feature``, ``threshold``, ``left`` and others, which the
        guide on inspection lists.
    embedding_ : str
        The form of the outputs that was used.
    embedding_rank_ : int
        Number of columns of that form.
    embedding_residual_ : float
        The error of an approximate form, 0.0 if it is exact: for "cholesky" and "nystrom" the
        residual trace divided by the trace of the Gram matrix, for "fourier" the relative error
        (Frobenius) of the Gram matrix over the pairs of 512 outputs.
    search_rank_ : int
        Number of directions in which splits were searched; ``embedding_rank_`` if all.
    search_variance_ : float
        The fraction of the variance of the embedded outputs in these directions; if "auto" chose
        them, of the variance of the outputs themselves.
    feature_importances_ : ndarray of shape (p,)
        Each feature's share of the total variance reduction.
    min_samples_leaf_ : int
        The minimum number of samples in a leaf that trees were grown with.
    row_weight_ : ndarray of shape (n,)
        The weights of the training rows.
    categories_ : list
        For each feature its sorted categories, or None if it is numeric.
    codings_ : list
        For each feature the coordinates of its categories, of missing values and of new categories,
        or None; absent if no feature has any.
    has_missing_ : ndarray of shape (p,), bool
        Which features had missing values in training.
    """

OOB_ATTRIBUTES = """
decoder_ : Decoder
    The decoder, if it was tuned on out-of-bag predictions.
oob_weights_, oob_prediction_, oob_score_ : csr_array, ndarray, float
    Estimates for the training rows, with ``oob_score=True``; the score is the kernel R², or the
    accuracy of a classifier. A row drawn for every tree has an empty row of weights and no
    prediction: NaN, -1, None or "", depending on the type.
"""


def document(cls: T) -> T:
    """Fill in a model's docstring: ``{parameters}`` from its signature, and its attributes.

    ``{shared_attributes}`` are those of every model; ``{attributes}`` are all that trees have.
    """
    if cls.__doc__ is None:  # python -OO
        return cls
    own = BOOSTING if "learning_rate" in signature(cls).parameters else {}
    lines = [
        f"{name} : {(PARAMETERS | own)[name]}".replace("{default}", repr(parameter.default))
        for name, parameter in signature(cls).parameters.items()
    ]
    # Texts above are indented as in a class; Python before 3.13 keeps that, and later ones do not.
    parameters = "\n".join(lines).replace(" " * 8, " " * 4)
    shared = cleandoc(SHARED_ATTRIBUTES)
    attributes = shared + "\n" + cleandoc(TREE_ATTRIBUTES)
    if "oob_score" in signature(cls).parameters:
        attributes += OOB_ATTRIBUTES.rstrip()
    cls.__doc__ = (
        cleandoc(cls.__doc__)
        .replace("{parameters}", parameters)
        .replace("{shared_attributes}", shared)
        .replace("{attributes}", attributes)
    )
    return cls
