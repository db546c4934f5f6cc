"""The ``windjoin`` command: what it offers, and how it ends."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from windjoin.errors import WindjoinError

# a module of this package each, with add_parser(commands)
COMMANDS = ("demo", "run", "explain", "plan", "doctor", "simulate")
FAILED, STOPPED, NOBODY_READS = 1, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 1 failed, 2 misused, 130 stopped by Ctrl-C.

    >>> main(["run", "there-is-no-such-file.toml"])
    1
    """
    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        given = parser(words).parse_args(words)
        code: int = given.run(given)
        sys.stdout.flush()
        return code
    except WindjoinError as error:
        return _failed(str(error))
    except MemoryError as error:
        return _failed(f"not enough memory: {error}" if str(error) else "not enough memory")
    except KeyboardInterrupt:
        print("windjoin: stopped", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # `windjoin run ... | head`: whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS


def parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The command asked for with its options; all commands if it is none of them."""
    made = argparse.ArgumentParser(
        prog="windjoin", description="Exact windowed joins of any number of streams."
    )
    made.add_argument("--version", action="version", version=f"windjoin {version('windjoin')}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    asked = [name for name in COMMANDS if name in words[:1]]
    for name in asked or COMMANDS:
        import_module(f"windjoin.cli.{name}").add_parser(commands)
    return made


def _failed(message: str) -> int:
    print(f"windjoin: {' '.join(message.split())}", file=sys.stderr)
    return FAILED
