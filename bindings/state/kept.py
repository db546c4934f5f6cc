"""What a session with a bound on its memory saves beside its rows, and how it goes on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.kernels.spec import I64
from windjoin.state.generations import read_generation
from windjoin.state.keeper import Keeper
from windjoin.state.snapshot import SnapshotFolder, unwritable
from windjoin.state.unit import Unit, sync_file

PATTERN = "generation-*.wj"


def keeper_about(keeper: Keeper, folder: SnapshotFolder) -> dict[str, Any]:
    """What there is to know, with the files of all generations in the folder."""
    files = []
    owing, residence = keeper.owing, keeper.residence
    for generation in owing.generations:
        path = folder.path / f"generation-{generation.left:08d}-{keeper.token}.wj"
        if not path.exists():
            _bring(generation.unit, path)
        files.append({"file": path.name, "left": generation.left})
    return {
        "generations": files,
        "epoch": residence.epoch,
        "over": residence.over,
        "clean_until": owing.clean_until,
        "cleaned_epoch": owing.cleaned_epoch,
        "most_rows": [[host, rows] for host, rows in keeper.most_rows.items()],
        "done": {name: getattr(keeper.done, name) for name in keeper.done.__slots__},
        "cleaned": [owing.cleaned, owing.seconds],
        "streams": [{"base": n.base, "over": n.over} for n in residence.numbering],
    }


def _bring(unit: Unit, path: Path) -> None:
    """The file of a generation, on disk, under another name; a link where that can be."""
    assert unit.path is not None, "generations lie in files"
    path.unlink(missing_ok=True)
    try:
        try:
            os.link(unit.path, path)
        except OSError:  # another file system
            shutil.copyfile(unit.path, path)
        sync_file(path)
    except OSError as error:
        raise unwritable(path, error) from error


def keeper_tables(keeper: Keeper) -> Iterator[tuple[str, pa.Table]]:
    """Which rows are in memory, of those that came before others left; where epochs begin."""
    yield "borders", pa.table({"time": keeper.residence.borders})
    for number, numbering in enumerate(keeper.residence.numbering):
        kept = numbering.kept_from(keeper.head(number))
        yield f"kept.{number}", pa.table({"row": kept})
        yield f"tails.{number}", pa.table({"row": numbering.tails})


def sweep_generations(folder: SnapshotFolder, about: dict[str, Any]) -> None:
    """Remove files that the manifest does not name."""
    names = {one["file"] for one in about["generations"]}
    for path in folder.path.glob(PATTERN):
        if path.name not in names:
            path.unlink(missing_ok=True)


def resume_numbering(keeper: Keeper, about: dict[str, Any], manifest: Unit) -> None:
    """Which rows are to be in memory; before they are loaded."""
    for number, known in enumerate(about["streams"]):
        kept, tails = (
            manifest.table(f"{what}.{number}").column("row").to_numpy()
            for what in ("kept", "tails")
        )
        keeper.residence.numbering[number].resume(kept, known["base"], tails, known["over"])
    keeper.residence.resume(about["epoch"], manifest.table("borders"), about["over"])


def resume_keeper(keeper: Keeper, about: dict[str, Any], folder: SnapshotFolder) -> None:
    """Go on where another left off, with files of its own."""
    owing = keeper.owing
    owing.clean_until, owing.cleaned_epoch = about["clean_until"], about["cleaned_epoch"]
    owing.cleaned, owing.seconds = about["cleaned"]
    keeper.most_rows = dict(about["most_rows"])
    for name, value in about["done"].items():
        setattr(keeper.done, name, value)
    for one in about["generations"]:
        path = keeper.files.new_file()
        found = Unit.map(folder.path / one["file"])  # which it verifies
        _bring(found, path)
        unit = Unit.map(path, verify=False)
        owing.generations.append(read_generation(unit, one["left"], keeper.spec.streams))
    owing.hold()


def resident(keeper: Keeper | None, stream: int, arrivals: I64) -> I64 | None:
    """Places of those rows that are to be in memory; None: of all."""
    if keeper is None or not keeper.residence.numbering[stream].base:
        return None
    return np.flatnonzero(keeper.residence.numbering[stream].there(arrivals))
