"""Serve a small image search engine: ``make demo-search``, then open the address that it prints.

The images are generated: scenes of simple shapes in a few styles, which are the labels. To search
your own pictures, use the command line instead:

    okforest index build INDEX FOLDER && okforest index serve INDEX
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from okforest.retrieval import SubwindowIndex
from okforest.retrieval.web import ServerSettings, serve

SIDE = 240
STYLES = {
    "harbour": ((40, 90, 140), (190, 220, 235)),
    "forest": ((20, 60, 30), (120, 170, 90)),
    "desert": ((190, 130, 60), (250, 220, 160)),
    "night": ((10, 10, 35), (60, 50, 110)),
    "meadow": ((110, 160, 60), (200, 225, 240)),
    "city": ((90, 90, 100), (210, 200, 190)),
}


def scene(style: str, rng: np.random.Generator) -> Image.Image:
    """Draw a scene: a sky, a ground, and things of the style at random places."""
    dark, light = (np.array(color) for color in STYLES[style])
    ramp = np.linspace(0, 1, SIDE)[:, None, None] ** rng.uniform(0.6, 1.6)
    pixels = light * (1 - ramp) + dark * ramp + rng.normal(0, 6, (SIDE, SIDE, 3))
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(rng.integers(4, 9)):
        x, y = rng.integers(0, SIDE), rng.integers(SIDE // 3, SIDE)
        size = int(rng.integers(18, 60))
        DRAWERS[style](draw, int(x), int(y), size, rng)
    return image.filter(ImageFilter.GaussianBlur(0.6))


def _boat(draw, x, y, size, rng):
    draw.polygon([(x, y - size), (x, y), (x + size // 2, y)], fill=(245, 245, 235))
    hull = [
        (x - size // 2, y),
        (x + size // 2, y),
        (x + size // 3, y + 10),
        (x - size // 3, y + 10),
    ]
    draw.polygon(hull, fill=(120, 40, 30))


def _tree(draw, x, y, size, rng):
    draw.rectangle([x - 3, y, x + 3, y + size // 2], fill=(80, 55, 30))
    for k in range(3):
        w = size * (3 - k) // 5
        top = y - size * k // 4
        draw.polygon([(x - w, top), (x + w, top), (x, top - size // 2)], fill=(15, 75, 35))


def _dune(draw, x, y, size, rng):
    draw.pieslice([x - 2 * size, y, x + 2 * size, y + 2 * size], 180, 360, fill=(215, 165, 95))
    draw.line([(x, y), (x + size, y + size // 2)], fill=(160, 110, 60), width=3)


def _star(draw, x, y, size, rng):
    y = int(rng.integers(0, SIDE))
    r = size // 12 + 1
    draw.ellipse([x - r, y - r, x + r, y + r], fill=(250, 245, 200))
    draw.ellipse([30, 20, 70, 60], fill=(235, 230, 210))


def _flower(draw, x, y, size, rng):
    color = tuple(int(c) for c in rng.choice([(220, 60, 80), (240, 200, 60), (200, 90, 200)]))
    r = size // 8 + 2
    for dx, dy in ((-r, 0), (r, 0), (0, -r), (0, r)):
        draw.ellipse([x + dx - r, y + dy - r, x + dx + r, y + dy + r], fill=color)
    draw.ellipse([x - r // 2, y - r // 2, x + r // 2, y + r // 2], fill=(250, 230, 120))


def _house(draw, x, y, size, rng):
    grey = int(rng.integers(50, 130))
    draw.rectangle([x, y - 2 * size, x + size, SIDE], fill=(grey, grey, grey + 10))
    for row in range(y - 2 * size + 6, SIDE, 12):
        for col in range(x + 5, x + size - 5, 10):
            draw.rectangle([col, row, col + 4, row + 6], fill=(250, 225, 130))


DRAWERS = {
    "harbour": _boat,
    "forest": _tree,
    "desert": _dune,
    "night": _star,
    "meadow": _flower,
    "city": _house,
}


def write_scenes(folder: Path, n_each: int = 20, seed: int = 0) -> None:
    """Write scenes of all styles to a folder, each style in its own folder."""
    rng = np.random.default_rng(seed)
    for style in STYLES:
        (folder / style).mkdir(parents=True, exist_ok=True)
        for i in range(n_each):
            scene(style, rng).save(folder / style / f"{style}-{i:02d}.png")


def main() -> None:
    """Build the index and serve it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--images", type=int, default=20, help="of each style")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pictures = Path(folder) / "pictures"
        print("drawing pictures")
        write_scenes(pictures, options.images)
        index = SubwindowIndex.build(Path(folder) / "index", pictures, verbose=1)
        settings = ServerSettings(hosts=("127.0.0.1", "localhost"))

        def ready() -> None:
            print(
                f"open http://127.0.0.1:{options.port} in a browser; Ctrl-C stops the server",
                flush=True,
            )
            print(f"pictures to search with are in {pictures}, until then", flush=True)

        try:
            serve(index, port=options.port, settings=settings, ready=ready)
        except OSError as error:  # the port is in use
            raise SystemExit(f"{error} For example: --port {options.port + 1}") from error


if __name__ == "__main__":
    main()
