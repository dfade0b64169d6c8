"""`summary.json` of a search for settings: what was tried, how the default drifted, what was confirmed, and what to paste."""

from dataclasses import asdict
from typing import Any

from sensorbench.results.tune import TuneResult
from sensorbench.tuning import confirm
from sensorbench.tuning.drift import drift
from sensorbench.tuning.effects import effects
from sensorbench.tuning.judging import Best, Judged, best_of, judged
from sensorbench.tuning.space import Space

# Repeats of the default that are further apart than this make single trials hard to tell from one another.
MUCH_DRIFT = 1.25


def summarise_tune(result: TuneResult) -> dict[str, Any]:
    """The summary. Times in s, rates in operations a second, sizes in bytes; `outcome` is None until the confirmation is
    over.
    """
    manifest, space = result.manifest, Space.model_validate(result.manifest.space)
    smaller = bool(manifest.goal["smaller_is_better"])
    found = judged(result.trials)
    best = best_of(found, smaller_is_better=smaller)
    verdict = _verdict(result, best, smaller_is_better=smaller)
    changed = {key: value for key, value in best.configuration.items() if manifest.start.get(key) != value} if best else {}
    is_gain = verdict is not None and verdict.is_gain
    return {
        **manifest.head(result.state),
        "goal": manifest.goal,
        "space": manifest.space,
        "left_out": manifest.left_out,
        "start": manifest.start,
        "seed": manifest.seed,
        "budget": manifest.budget,
        "pairs": manifest.pairs,
        "outcome": None if verdict is None else "gain" if is_gain else "no gain",
        "why": verdict.why if verdict else "the search or its confirmation did not come to its end",
        "best": best.configuration if best else None,
        "changed": changed,
        "ratio": asdict(verdict.ratio) if verdict and verdict.ratio else None,
        "search_ratio": best.ratio if best else None,
        "file": space.file,
        "snippet": space.snippet(changed) if is_gain else "",
        "effects": [_effect(space, one) for one in effects(space, found, best)] if best else [],
        "trials": [_trial(number, one) for number, one in enumerate(found, start=1)],
        "confirmation": [one.model_dump(mode="json", exclude={"choices"}) for one in result.confirmation],
        "drift": _drift(result),
        "warnings": _warnings(result, space, best, is_gain=is_gain),
    }


def _verdict(result: TuneResult, best: Best | None, *, smaller_is_better: bool) -> confirm.Verdict | None:
    """What came out; None when not everything was measured that was to be."""
    if result.state != "complete":
        return None
    why = confirm.why_not_worth_it(result.manifest.start, best, smaller_is_better=smaller_is_better)
    if why:
        return confirm.Verdict(False, why)
    return confirm.verdict(result.confirmation, result.manifest.pairs, smaller_is_better=smaller_is_better)


def _trial(number: int, one: Judged) -> dict[str, Any]:
    return {"number": number, **one.trial.model_dump(mode="json"), "ratio": one.ratio}


def _effect(space: Space, effect: Any) -> dict[str, Any]:
    return {**asdict(effect), "about": space.settings[effect.setting].about}


def _drift(result: TuneResult) -> dict[str, Any] | None:
    values = [one.value for one in result.trials if one.role == "default" and one.outcome == "measured" and one.value]
    found = drift(values)
    return {"values": values, **asdict(found)} if found else None


def _warnings(result: TuneResult, space: Space, best: Best | None, *, is_gain: bool) -> list[dict[str, str]]:
    """What to mind, each with what to do."""
    warnings = []

    def warn(kind: str, text: str, action: str) -> None:
        warnings.append({"kind": kind, "text": text, "action": action})

    drifted = _drift(result)
    if drifted and drifted["highest_to_lowest"] > MUCH_DRIFT:
        warn(
            "drift",
            f"Repeats of the default were up to {drifted['highest_to_lowest']:.2f} × apart.",
            "Trust the confirmation alone; a longer --step makes trials more alike.",
        )
    weaker = [key for key in space.weaker if is_gain and best and best.choices.get(key) != space.settings[key].choices[0]]
    if weaker:
        warn(
            "durability",
            f"Durability is traded for speed by {', '.join(weaker)}.",
            "Paste that only where losing the last writes in a crash is acceptable.",
        )
    failed = [one for one in result.trials if one.outcome == "failed"]
    if failed:
        warn(
            "failed",
            f"{len(failed)} trials failed; the first: {failed[0].reason}",
            "Narrow the space where servers do not start.",
        )
    if result.manifest.setting.embedded:
        warn(
            "embedded",
            "The database runs inside the client's process and shares its processors.",
            "Read ratios, not figures.",
        )
    return warnings
