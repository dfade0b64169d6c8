"""`summary.json` of a search for settings: what was tried, how the default drifted, what was confirmed, and what to paste."""

from dataclasses import asdict

from sensorbench.benchmarks.tune import confirm
from sensorbench.benchmarks.tune.drift import drift
from sensorbench.benchmarks.tune.effects import Effect, effects
from sensorbench.benchmarks.tune.goal import measured_figure
from sensorbench.benchmarks.tune.judging import Best, Judged, best_of, judged
from sensorbench.benchmarks.tune.space import Space
from sensorbench.results.summary.envelope import Caveat, Caveats, envelope, fields_of_plan
from sensorbench.results.summary.tune import (
    DefaultDrift,
    SettingEffect,
    TuneFigures,
    TuneSummary,
    TuneTrial,
)
from sensorbench.results.tune import TuneResult

# Repetitions of the default that are further apart than this make single trials hard to distinguish.
MUCH_DRIFT = 1.25


def summarise_tune(result: TuneResult) -> TuneSummary:
    """The summary of a search on disk."""
    manifest, space = result.manifest, Space.model_validate(result.manifest.plan.space.model_dump())
    goal = manifest.plan.goal
    found = judged(result.trials)
    best = best_of(found, smaller_is_better=goal.smaller_is_better)
    verdict = _verdict(result, best, smaller_is_better=goal.smaller_is_better)
    changed = {key: value for key, value in best.configuration.items() if manifest.plan.start.get(key) != value} if best else {}
    is_gain = verdict is not None and verdict.is_gain
    drifted = _drift(result)
    return TuneSummary(
        **envelope(manifest),
        warnings=_warnings(result, space, best, drifted, is_gain=is_gain),
        result=TuneFigures(
            **fields_of_plan(manifest.plan, TuneFigures),
            verdict=None if verdict is None else "gain" if is_gain else "no gain",
            reason=verdict.why if verdict else "the search or its confirmation did not come to its end",
            best=best.configuration if best else None,
            changed=changed,
            ratio=measured_figure(verdict.ratio) if verdict and verdict.ratio else None,
            search_ratio=best.ratio if best else None,
            snippet=space.snippet(changed) if is_gain else "",
            effects=[_effect(space, effect) for effect in effects(space, found, best)] if best else [],
            trials=[_trial(number, trial) for number, trial in enumerate(found, start=1)],
            confirmation=result.confirmation,
            drift=drifted,
        ),
    )


def _verdict(result: TuneResult, best: Best | None, *, smaller_is_better: bool) -> confirm.Verdict | None:
    """What came out; None when not everything was measured that was to be."""
    if result.state != "complete":
        return None
    why = confirm.why_not_worth_it(result.manifest.plan.start, best, smaller_is_better=smaller_is_better)
    if why:
        return confirm.Verdict(False, why)
    return confirm.verdict(result.confirmation, result.manifest.plan.pairs, smaller_is_better=smaller_is_better)


def _trial(number: int, found: Judged) -> TuneTrial:
    return TuneTrial(**found.trial.model_dump(), number=number, ratio=found.ratio)


def _effect(space: Space, effect: Effect) -> SettingEffect:
    return SettingEffect(
        setting=effect.setting,
        about=space.settings[effect.setting].about,
        with_it=effect.with_it,
        trials_with=effect.trials_with,
        trials_without=effect.trials_without,
        ratio=measured_figure(effect.ratio) if effect.ratio else None,
    )


def _drift(result: TuneResult) -> DefaultDrift | None:
    values = [trial.value for trial in result.trials if trial.role == "default" and trial.outcome == "measured" and trial.value]
    found = drift(values)
    return DefaultDrift(values=values, **asdict(found)) if found else None


def _warnings(
    result: TuneResult, space: Space, best: Best | None, drifted: DefaultDrift | None, *, is_gain: bool
) -> list[Caveat]:
    """What to mind, each with what to do."""
    caveats = Caveats()
    if drifted and drifted.max_to_min > MUCH_DRIFT:
        caveats.add(
            "drift",
            f"Repetitions of the default were up to {drifted.max_to_min:.2f} × apart.",
            "Trust the confirmation alone; a longer --step-duration makes trials more alike.",
        )
    weaker = [key for key in space.weaker if is_gain and best and best.choices.get(key) != space.settings[key].choices[0]]
    if weaker:
        caveats.add(
            "durability",
            f"Durability is traded for speed by {', '.join(weaker)}.",
            "Paste that only where losing the last writes in a crash is acceptable.",
        )
    failed = [trial for trial in result.trials if trial.outcome == "failed"]
    if failed:
        caveats.add(
            "failed",
            f"{len(failed)} trials failed; the first: {failed[0].reason}",
            "Narrow the space where servers do not start.",
        )
    if result.manifest.variants[0].embedded:
        caveats.add(
            "embedded",
            "The database runs inside the client's process and shares its CPUs.",
            "Read ratios, not figures.",
        )
    return caveats
