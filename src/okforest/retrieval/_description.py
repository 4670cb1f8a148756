"""What an index holds, and how large it is."""

from typing import Any

import numpy as np

from okforest.retrieval._store import Snapshot


def describe(snapshot: Snapshot) -> dict[str, Any]:
    """Return numbers of images, subwindows, postings, trees and leaves; bytes; parameters."""
    vocabulary = snapshot.vocabulary
    n_subwindows = snapshot.column("n_subwindows").astype(np.int64)
    posting_bytes = sum(segment.postings.nbytes for segment in snapshot.segments)
    tree_bytes = vocabulary.nodes.nbytes
    indexed = int(n_subwindows.sum()) * vocabulary.n_trees
    return {
        "images": int(snapshot.live.sum()),
        "removed": int((~snapshot.live).sum()),
        "labels": len(snapshot.used_labels),
        "segments": len(snapshot.segments),
        "subwindows": int(n_subwindows[snapshot.live].sum()),
        "postings": sum(len(segment.postings) for segment in snapshot.segments),
        "trees": vocabulary.n_trees,
        "leaves": vocabulary.n_leaves,
        "vocabulary": vocabulary.key,
        "posting_bytes": posting_bytes,
        "tree_bytes": tree_bytes,
        "thumbnail_bytes": sum(len(s.table.texts["thumbnail"].data) for s in snapshot.segments),
        "bytes_per_subwindow_and_tree": (posting_bytes + tree_bytes) / max(1, indexed),
        "generation": snapshot.manifest.generation,
        "segmenter": repr(vocabulary.segmenter),
        "random_state": vocabulary.seed,
        "root": snapshot.manifest.root,
        "thumbnail_side": snapshot.manifest.thumbnail_side,
    }
