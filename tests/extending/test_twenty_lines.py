"""The guide on decoding: a kernel, a decoder and a loss of the user's own, in twenty lines."""

import re

import pytest

make_figures = pytest.importorskip("make_figures", reason="docs/ is only in the source tree")


def test_a_kernel_a_decoder_and_a_loss():
    """The example has at most twenty lines of code, and the decoder for the loss costs less."""
    page = (make_figures.DOCS / "decoding.md").read_text()
    example = make_figures.EXAMPLE.search(page)
    lines = [line for line in example["code"].splitlines() if line.strip()]
    assert len(lines) <= 20
    printed = make_figures.EXAMPLE.search(make_figures.run(example[0], make_figures.DOCS))["text"]
    nearest, expected = map(float, re.findall(r"\d+\.\d+", printed))
    assert expected < 0.7 * nearest
