"""Two cameras, one scene: frames that show the same object at about the same time.

    python examples/image_pairs.py [FOLDER FOR THE PICTURE]

Frames of 40 x 40 pixels are made up: a bright disc moves over a textured ground, and each camera
has its own noise and brightness. For every frame the nearest one of the other camera is found,
within two seconds and a mean difference of 14.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import windjoin as wj
from numpy.typing import NDArray

SIDE = 40
FRAMES = 120


def frames(camera: int) -> tuple[pa.Table, NDArray[np.uint8]]:
    """Milliseconds and pixels of one camera; the second starts late and is a little darker."""
    chance = np.random.default_rng(camera)
    ground = np.random.default_rng(7).integers(60, 110, (SIDE, SIDE))
    times = 100 * np.arange(FRAMES) + chance.integers(0, 60, FRAMES) + 400 * camera
    y, x = np.mgrid[:SIDE, :SIDE]
    pictures = []
    for time in times:
        angle = time / 900
        middle = SIDE / 2 + 12 * np.cos(angle), SIDE / 2 + 12 * np.sin(1.7 * angle)
        disc = 150 * np.exp(-((x - middle[0]) ** 2 + (y - middle[1]) ** 2) / 30)
        picture = ground + disc - 5 * camera + chance.normal(0, 6, (SIDE, SIDE))
        pictures.append(np.clip(picture, 0, 255).astype(np.uint8))
    pixels = np.stack(pictures)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(pixels.reshape(-1)), SIDE * SIDE)
    return pa.table({"ms": times, "frame": np.arange(FRAMES), "pixels": flat}), pixels


def main(folder: Path) -> None:
    """Join, print the best, draw it."""
    made = [frames(camera) for camera in (0, 1)]
    tables = {"left": made[0][0], "right": made[1][0]}
    left, right = (wj.stream(name, time="ms", window=2000) for name in tables)
    difference = wj.mean_abs_diff(left["pixels"], right["pixels"])
    query = wj.join(
        left,
        right,
        on=difference <= 14,
        nearest=1,
        select=[
            left["frame"],
            right["frame"],
            difference.alias("difference"),
            (right["ms"] - left["ms"]).alias("later"),
        ],
    )
    found = query.run(tables).sort_by("difference")
    print(f"{len(found)} frames have a partner, of {2 * FRAMES}")
    print(found.slice(0, 3).to_pylist())
    apart = float(np.median(np.abs(found["later"].to_numpy())))
    print(f"median distance in time: {apart:.0f} ms")
    print(query.explain())
    _draw(found, [pixels for _, pixels in made], folder / "image_pairs.png")


def _draw(found: pa.Table, pixels: list[NDArray[np.uint8]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    shown = found.take(np.linspace(0, len(found) - 1, 6).astype(int)).to_pylist()
    figure, axes = plt.subplots(2, len(shown), figsize=(9, 3.4))
    for column, pair in enumerate(shown):
        for row, name in enumerate(("left", "right")):
            frame = pair[f"{name}_frame"]
            axes[row, column].imshow(pixels[row][frame], cmap="gray", vmin=0, vmax=255)
            axes[row, column].set_title(f"{name} {frame}", fontsize=8)
            axes[row, column].axis("off")
        axes[1, column].text(0, SIDE + 6, f"difference {pair['difference']:.1f}", fontsize=8)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    print(f"picture: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
