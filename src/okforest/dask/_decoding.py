"""Decoders of forests that stay on workers: which can be used, and what they need to know."""

from okforest.decode import Decoder, Support, as_decoder
from okforest.decode.search import CandidateSearch
from okforest.models.tree_model import TreeModel
from okforest.weights import Span, SummedWeights


def check_decoder(model: TreeModel, span: Span, partitioned: bool) -> None:
    """Raise a ValueError, before trees grow, if the forest could not decode its predictions."""
    decoder = as_decoder(model.decoder, span.kernel)
    decoder.check(span)
    if not decoder.is_tuned:
        raise ValueError(
            f"{decoder!r} is tuned from out-of-bag predictions of all trees, which stay on their "
            "workers. Use okforest.dask.fit, or a decoder that was tuned on a sample of the rows: "
            f"decoder=okforest.tune_decoder(model, X, y, {decoder!r})."
        )
    if partitioned and searches_training_set(decoder, span):
        name = "'training_set'" if model.decoder in ("auto", "training_set") else repr(decoder)
        raise ValueError(
            f"decoder {name} searches all training outputs, which are in partitions. Set "
            "decoder='support', which searches those of nonzero weight; predict(X, candidates=...) "
            "then takes candidates, too."
        )


def searches_training_set(decoder: Decoder, span: Span) -> bool:
    """Return whether a decoder, or one within it, may choose outputs without any weight."""
    if isinstance(decoder, CandidateSearch):
        own = any(block is span.training for block in decoder._candidate_blocks(span))
        return own and not isinstance(decoder, Support)
    inner = decoder.get_params(deep=False).get("decoder")
    return inner is not None and searches_training_set(as_decoder(inner, span.kernel), span)


def takes_sums(decoder: Decoder, span: Span) -> bool:
    """Return whether a decoder can do with sums of explicit features instead of weights."""
    if span.features is None:
        return False
    try:
        decoder.decode(SummedWeights(span.features[:1], len(span)), span)
    except TypeError:  # of SummedWeights: it decodes weights of the same output
        return False
    return True
