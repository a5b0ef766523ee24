"""Frozen claims: a hash of what is claimed, committed before a seed of the claim is run.

What always holds: the hash is of statement, relations, measure, seeds, arms and how they are held to be fair, with the
settings that tuning chose and the files of the user's own that arms name; what a run is computed with (`kept.MEANS`) is
no part of it. Seeds that were run are spent: whoever runs them again repeats a result and makes none.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from longstride.claims.claim import Claim
from longstride.claims.kept import read_kept, without_means, write_kept
from longstride.claims.tuning import Tuned
from longstride.core.errors import ConfigError, RunError
from longstride.core.modules import own_modules
from longstride.core.provenance import came_after, changed_since, clean, committed, in_history
from longstride.core.sealed import DamagedError, read_object
from longstride.run.experiment import FORMAT_FILE

SUFFIX = ".frozen.json"
"""Of the file beside a claim's kept result."""


def hash_of(claim: Claim, tuned: Tuned) -> str:
    """The hash of a claim and of the settings that its arms enter with."""
    data = {
        "name": claim.name,
        "statement": claim.statement,
        "paper": claim.paper,
        "measure": claim.measure,
        "seeds": list(claim.seeds),
        "relations": [list(of.relations) if of else [] for of in (claim.expected, claim.control, claim.reported)],
        "design": claim.design,
        "recipe": without_means(claim.recipe.as_data()),
        "arms": {arm: without_means(of.as_data()) for arm, of in claim.arms.items()},
        "chosen": {arm: of["chosen"] for arm, of in tuned.items()},
    }
    if own := _own_code(claim):
        data["modules"] = own
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _own_code(claim: Claim) -> dict[str, str]:
    """By module of the user's own that an arm names, the hash of its file."""
    parts = [claim.recipe.as_data(), *(of.as_data() for of in claim.arms.values())]
    return {name: record["sha256"] for name, record in own_modules({"of": parts}).items()}


def check_unspent(claim: Claim, place: Path, folder: Path) -> None:
    """Refuses to freeze what was looked at: `folder/NAME` has its runs.

    Raises:
        ConfigError: one of its seeds was run, or a result of them is kept, or a frozen one under its name.
    """
    if (kept := kept_beside(place)).exists():
        result = read_kept(kept)
        if result.get("frozen") or set(result["seeds"]) & set(claim.seeds):
            raise ConfigError(
                f"{claim.name}: its result is kept in {kept}, so its seeds are spent; a changed experiment has "
                "other seeds, and another name than the old result"
            )
    for run in (folder / claim.name / f"{arm}-{seed}" for seed in claim.seeds for arm in claim.arms):
        if run.exists():
            raise ConfigError(
                f"{claim.name}: {run} has a run of one of its seeds, and a seed that was looked at decides nothing; "
                "give the claim other seeds"
            )


def freeze(claim: Claim, place: Path, tuned: Tuned, pilot: dict[str, Any]) -> dict[str, Any]:
    """Writes the hash of a claim to `place`, with what was tuned and what a pilot said."""
    found = {
        "name": claim.name,
        "hash": hash_of(claim, tuned),
        "relations": list(claim.expected.relations),
        "seeds": list(claim.seeds),
        "pilot": pilot,
        "tuned": tuned,
    }
    return write_kept(place, found)


def kept_beside(place: Path) -> Path:
    """Where the result of a claim is kept that is frozen in `place`."""
    return place.with_name(place.name.removesuffix(SUFFIX) + ".json")


def frozen_at(claim: Claim, place: Path) -> dict[str, Any] | None:
    """What was frozen of a claim, with `commit`, the one that holds it; None where no history can hold it, or where its
    seeds are spent and it is not frozen as it stands.

    Raises:
        ConfigError: its seeds are unspent, and it is not frozen as it stands, or the code differs from its commit.
        RunError: what is frozen is damaged.
    """
    if not in_history(place):
        return None
    trouble, found = "no hash of it is committed", committed(place)
    if found:
        text, since = found
        try:
            frozen = json.loads(text)
            if frozen["hash"] == hash_of(claim, frozen["tuned"]):
                if clean() is not False and not changed_since(place):
                    return frozen | {"commit": since}
                trouble = "the code has changes that are not committed"
            else:
                trouble = "it is not what was frozen"
        except (ValueError, KeyError, TypeError) as e:
            raise RunError(f"{place} cannot be read: {type(e).__name__}: {e}; freeze the claim again") from e
    if _spent(claim, kept_beside(place)):
        return None
    raise ConfigError(
        f"{claim.name}: {trouble}, and its seeds are unspent. Freeze it (`longstride claim NAME --freeze`), commit "
        f"{place} and all changes, and run it then; or explore with --seeds N, which decides nothing"
    )


def _spent(claim: Claim, kept: Path) -> bool:
    return kept.exists() and set(claim.seeds) <= set(read_kept(kept)["seeds"])


def check_runs(claim: Claim, folder: Path, since: str, place: Path) -> None:
    """Refuses runs in `folder` that were begun before the claim was frozen, or with other files of the user's own.

    Raises:
        RunError: one was.
    """
    own = _own_code(claim)
    for run in (folder / f"{arm}-{seed}" for arm in claim.arms for seed in claim.seeds):
        try:
            found = read_object(run / FORMAT_FILE)
        except (OSError, DamagedError):
            continue
        begun, modules = found.get("commit"), found.get("modules") or {}
        for name in own:
            if modules.get(name, {}).get("sha256", own[name]) != own[name]:
                raise RunError(f"{run} was made with another file of the module {name!r}: remove the folder")
        if begun and came_after(begun, since, place) is False:
            raise RunError(
                f"{run} was begun at commit {begun[:12]}, before the claim was frozen in {since[:12]}: its seed is "
                "spent; give the claim other seeds, freeze it again, and remove the folder"
            )
