"""Parameter texts that several models share, written once."""

from inspect import cleandoc, signature
from typing import TypeVar

T = TypeVar("T", bound=type)

PARAMETERS = {
    "n_estimators": """int, default=100
        Number of trees.""",
    "kernel": """OutputKernel, str or callable, default="linear"
        What outputs are: an object of :mod:`okforest.kernels`, the name of one ("linear", "rbf",
        "laplacian", "polynomial", "mahalanobis", "dirac"), or a function of two lists of outputs
        that returns their Gram matrix.""",
    "splitter": """{"best", "random"}, default="best"
        Whether every threshold of a feature is tried, or one at random.""",
    "criterion": """{"variance", "frobenius"}, default="variance"
        What a split is to reduce: the variance of the outputs in the leaves, or the squared error
        of the kernel that the tree predicts between the training inputs (the mean of the output
        kernel over their leaves). "frobenius" works on the Gram matrix and costs as much again for
        every leaf there is; its trees depend on the order of growth, and it has no splits of
        categorical features. ``min_impurity_decrease`` is then of that error; importances and
        pruning are of the variance in any case.""",
    "max_features": """int, float, "sqrt", "log2" or None, default={default}
        How many features are tried at a node: a number, a fraction of all, or all (None). The
        search goes on until at least one can split the node.""",
    "max_depth": """int, optional
        Largest depth of a tree.""",
    "min_samples_split": """int or float, default=2
        Fewest samples (or fraction of all) of a node that is split. A row counts as its weight,
        and at least as one; a row drawn twice for a tree counts twice.""",
    "min_samples_leaf": """int or float, default=1
        Fewest samples (or fraction of all) of a leaf, counted likewise.""",
    "max_leaf_nodes": """int, optional
        Most leaves of a tree. With it, nodes are split in the order of their gain.""",
    "min_impurity_decrease": """float, default=0.0
        A node is split if that reduces the variance of the outputs (summed over their components,
        where they are vectors), weighted by the node's share of all samples, by at least this
        much: a test of significance against noise of about that size.""",
    "ccp_alpha": """float, default=0.0
        Branches that reduce the variance of the outputs by no more than this for each of their
        leaves are cut off after growing; see :func:`okforest.select_ccp_alpha`.""",
    "bootstrap": """bool, default={default}
        Whether each tree is grown on rows drawn with replacement, a row's chance being its
        weight, or on all rows. The draw goes by the rows' inputs, not by their order (except among
        rows of equal inputs).""",
    "max_samples": """int or float, optional
        How many rows to draw for each tree (or fraction of all); by default as many as there are,
        a row of weight 3 being three. Only with ``bootstrap=True``.""",
    "oob_score": """bool, default=False
        Whether to estimate weights, predictions and score of the training rows by the trees that
        were not grown on them. Only with ``bootstrap=True``.""",
    "categorical_features": """array-like, "from_dtype" or None, default="from_dtype"
        Names, indices or a mask of the features that are categorical; by default the categorical
        and text columns of a frame. Their splits are subsets of categories, of which there may be
        1,024. Values never seen in training are treated as missing.""",
    "embedding": """str, default="auto"
        The form of the outputs from which trees are grown. "features", "gram" and "factor" are
        explicit features, Gram matrix and its exact factor; the trees are the same, and "auto"
        takes the cheapest. "cholesky", "nystrom" and "fourier" are approximate factors that need no
        Gram matrix, for many outputs of a kernel without explicit features: incomplete Cholesky,
        random landmarks and (RBF and Laplacian kernels) random Fourier features. Predictions are
        made with the true kernel in any case.""",
    "embedding_rank": """int, optional
        Most columns of an approximate embedding; by default 256.""",
    "search_rank": """int, "auto" or None, default=None
        Number of principal directions of the outputs in which splits are searched; leaves and
        predictions stay exact. None searches all. "auto" takes the fewest of 16, 32, 64 and 128 (at
        most an eighth of the rows) that keep 95 % of the variance, and all if none does. Node
        variances, and so importances, pruning, ``min_impurity_decrease`` and where a node counts as
        pure, are then those of these directions: a part ``search_variance_`` of the whole.""",
    "decoder": """Decoder or str, default="auto"
        How weights are turned into outputs: an object of :mod:`okforest.decode` or the name of one
        ("mean", "majority", "training_set", "support"). "auto" takes the closed form where the
        kernel has one, else the nearest training output.""",
    "random_state": """int, RandomState instance or None, default=None
        The seed. The same seed gives the same model, whatever ``n_jobs``.""",
    "warm_start": """bool, default=False
        Whether :meth:`fit` keeps the trees there are and adds as many as ``n_estimators`` asks for,
        on the same training set. The forest is the same as one grown at once.""",
    "n_jobs": """int, optional
        Number of threads to fit and to predict; -1 for all cores.""",
    "verbose": """int, default=0
        Whether to show a progress bar while fitting.""",
    "callback": """callable, optional
        Called while fitting, some twenty times a second, with the number of trees there are. An
        exception that it raises stops the fit.""",
    "n_neighbors": """int, default=5
        Number of neighbours.""",
    "weights": """{"uniform", "distance", "kernel"} or callable, default="uniform"
        How much neighbours weigh: all the same, by the inverse of their distance, by the input
        kernel k(x, z), or by a function that makes weights of an array of distances.""",
    "metric": """str or callable, default="euclidean"
        The distance between inputs: any name that :class:`sklearn.neighbors.NearestNeighbors`
        knows ("nan_euclidean" allows for missing values), a function of two rows, or "precomputed"
        if X holds distances.""",
    "metric_params": """dict, optional
        Parameters of the metric, such as ``{"p": 3}`` of "minkowski".""",
    "input_kernel": """str, kernel or callable, default={default}
        The kernel on inputs: any name that :func:`sklearn.metrics.pairwise.pairwise_kernels` knows,
        an object of :mod:`okforest.kernels` (such as ``RBF(sigma="median")``) or of
        :mod:`sklearn.gaussian_process.kernels`, or a function of two rows. "precomputed" says
        that X holds its values (for OKRidge alone).""",
    "gamma": """float, optional
        Parameter of the named kernels "rbf", "laplacian", "poly", "sigmoid" and "chi2", as in
        scikit-learn: "rbf" is exp(−γ‖x − z‖²), so that γ = 1/2σ². By default 1 over the number of
        features (1 for "chi2").""",
    "degree": """float, default=3
        Degree of the named kernel "poly".""",
    "coef0": """float, default=1
        Constant of the named kernels "poly" and "sigmoid".""",
    "input_kernel_params": """dict, optional
        Keyword arguments of an input kernel that is a function.""",
    "alpha": """float, "loo" or array-like of floats, default=1.0
        The penalty. Of several, the one with the least leave-one-out loss in feature space is
        taken; "loo" tries 21 of them, from 1e-8 to 100 times the mean of k(x, x).""",
    "n_components": """int, optional
        Number of principal directions of the training outputs in feature space that predictions
        are confined to; by default all.""",
    "n_landmarks": """int, optional
        Number of training rows, drawn at random, whose k(x, ·) predictions are sums of: the Nyström
        method, without any square matrix of all training rows. By default all rows, exactly.""",
}

# Where boosting means something else by a name, and what it alone has.
BOOSTING = {
    "n_estimators": """int, default=500
        Number of rounds.""",
    "learning_rate": """float, default=0.05
        What each round's prediction is multiplied by. The training loss never rises for values up
        to 1; small values need more rounds, and mostly predict better.""",
    "max_splits": """int, default=10
        Most splits of a tree: one more than this is the most leaves.""",
    "growth": """{"variance", "gain"}, default="variance"
        Which node of a tree is split next: the one of the largest total variance, or the one whose
        split reduces it most.""",
    "subsample": """float, default=1.0
        The part of the rows that each round learns from, drawn without replacement; with less than
        1, ``oob_improvement_`` tells what the others gain by each round.""",
    "base": """"tree" or estimator, default="tree"
        The base learner: trees, to which the parameters on splits and leaves apply, or an estimator
        with ``fit(X, R)``, where R of shape (n, r) holds residuals as vectors, and
        ``predict_weights(X)``, of shape (n_new, n): its prediction is their product with R. This is
        so of the models of okforest with the linear kernel (their default), of
        :class:`DirectionBase`, or of your own. It is asked to ``fit(X, R, sample_weight=...)`` if
        weights are not all one, as with ``subsample``, ``n_iter_no_change`` or weights given; a row
        of weight zero must not matter.""",
    "line_search": """bool, default=False
        Whether each round is first multiplied by what leaves the least training loss, in closed
        form. The means of leaves are that already: it makes no difference to trees.""",
    "n_iter_no_change": """int, optional
        Stop when so many rounds have not reduced the validation loss, which is measured in H,
        by ``tol``. By default all rounds are made.""",
    "validation_fraction": """float, default=0.1
        The part of the rows that is held out for it.""",
    "tol": """float, default=0.0001
        Least reduction, as a part of the loss of the mean.""",
    "embedding": PARAMETERS["embedding"].replace(
        "The form of the outputs from which trees are grown.",
        "The form of the residuals from which rounds learn.",
    ),
    "warm_start": """bool, default=False
        Whether :meth:`fit` keeps the rounds there are and adds as many as ``n_estimators`` asks
        for, on the same training set. The model is the same as one fitted at once.""",
    "n_jobs": """int, optional
        Number of threads to predict, and to update many residuals; -1 for all cores. (Rounds
        follow each other, and a tree is grown by one thread.)""",
    "callback": """callable, optional
        Called after each round with the number of rounds. An exception that it raises stops the
        fit.""",
}

SHARED_ATTRIBUTES = """kernel_ : OutputKernel
        The kernel, with parameters that depend on the outputs filled in.
    outputs_ : ndarray
        The training outputs.
    n_features_in_ : int
        Number of features seen in fitting.
    feature_names_in_ : ndarray of shape (p,)
        Their names, if X had any.
    """

TREE_ATTRIBUTES = """trees_ : okforest.engine.Trees
        The trees, as plain arrays.
    embedding_ : str
        The form of the outputs that was used.
    embedding_rank_ : int
        Number of columns of that form.
    embedding_residual_ : float
        What an approximate form leaves out, 0.0 if it is exact: of "cholesky" and "nystrom" the
        residual trace as a share of the Gram matrix's trace, of "fourier" the relative error
        (Frobenius) of the Gram matrix over the pairs of 512 outputs.
    search_rank_ : int
        Number of directions in which splits were searched; ``embedding_rank_`` if all were.
    search_variance_ : float
        The share of the variance of the embedded outputs in these directions.
    feature_importances_ : ndarray of shape (p,)
        Each feature's share of the total variance reduction.
    categories_ : list
        For each feature its categories, sorted, or None if it is numeric.
    has_missing_ : ndarray of shape (p,), bool
        Which features had missing values in training.
    """

OOB_ATTRIBUTES = """
oob_weights_, oob_prediction_, oob_score_ : csr_array, ndarray, float
    With ``oob_score=True``, of the training rows. A row drawn for every tree has an empty row of
    weights, and no prediction: NaN, -1, None or "", by type.
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
