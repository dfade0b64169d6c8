"""What `sensorbench choose` prints for people."""

from rich.table import Table
from rich.text import Text

from sensorbench.catalog.choice_json import ChoiceSummary, ChosenProfile
from sensorbench.catalog.profiles import profiles
from sensorbench.cli.printing import new_table
from sensorbench.progress import console

_SIGNS = {"met": Text("yes", "green"), "not met": Text("no", "red"), "unknown": Text("not known", "yellow")}
_AS_OF = {"today": "by what is true today", "studied": "by what the studies found, in their versions"}


def print_choice(choice: ChoiceSummary) -> None:
    """Prints which databases fit, which meet what, why others fall out, which needs to drop, and what a study advises."""
    screen = console()
    needs = ", ".join(f"{need.name}{'' if need.is_must else ' (a wish)'}" for need in choice.needs)
    screen.print(f"needs, {_AS_OF[choice.when]}: {needs}", style="bold", highlight=False)
    screen.print(_headline(choice), style="bold", highlight=False)
    for clash in choice.clashes:
        screen.print(f"{' and '.join(clash.needs)} clash: {clash.why}", highlight=False)
    if choice.to_drop:
        _print_drops(choice)
    screen.print(_table(choice))
    _print_reasons(choice)
    _print_measurements(choice)
    if choice.profile:
        _print_advice(choice.profile)
    screen.print("facts with their sources: sensorbench databases NAME", highlight=False)


def print_profiles() -> None:
    """Prints the use cases with their needs and what their studies advise."""
    table = new_table("profile", "use case", "needs", "the study advises", "source", wide=True)
    for profile in profiles().values():
        needs = ", ".join(f"{name} {' '.join(choices)}" for name, choices in profile.needs.items())
        advised = ", ".join([*profile.advice.advised, *filter(None, [profile.advice.outside])])
        table.add_row(profile.name, f"{profile.title}. {profile.summary}", needs, advised, profile.source)
    console().print(table)


def _headline(choice: ChoiceSummary) -> str:
    fitting = choice.fitting
    if not fitting:
        return "no database meets all of them"
    return f"{', '.join(fitting)} {'meets' if len(fitting) == 1 else 'meet'} all{' musts' if choice.has_wishes else ' of them'}"


def _print_drops(choice: ChoiceSummary) -> None:
    screen = console()
    several = len(choice.to_drop) > 1
    screen.print(f"the smallest {'sets' if several else 'set'} of needs to drop, so that a database is left:", highlight=False)
    for drop in choice.to_drop:
        screen.print(f"  {' and '.join(drop.needs)}: leaves {', '.join(drop.leaves)}", highlight=False)


def _table(choice: ChoiceSummary) -> Table:
    table = new_table("database", "met", *(need.name for need in choice.needs), wide=True)
    for database in (entry for entry in choice.databases if entry.is_known):
        name = Text(database.name, style="bold" if database.fits else "")
        met = f"{sum(verdict.verdict == 'met' for verdict in database.needs.values())} of {len(choice.needs)}"
        table.add_row(name, met, *(_SIGNS[database.needs[need.name].verdict] for need in choice.needs))
    return table


def _print_reasons(choice: ChoiceSummary) -> None:
    """Of those that fall out, what they have instead of what is needed."""
    screen = console()
    out = [database for database in choice.databases if not database.fits and database.is_known]
    if out:
        screen.print("why others fall out:", highlight=False)
    for entry in out:
        might = " (what is not known does not count as met)" if entry.might_fit else ""
        clashes = [f"{' and '.join(clash.needs)}: not at once" for clash in entry.clashes]
        why = "; ".join(filter(None, [entry.why_not, *clashes]))
        screen.print(f"  {entry.name} – {why}{might}", highlight=False)
    if unknown := [database.name for database in choice.databases if not database.is_known]:
        screen.print(f"no study had {', '.join(unknown)}", highlight=False)


def _print_measurements(choice: ChoiceSummary) -> None:
    lines = [(database.name, measured) for database in choice.databases if database.fits for measured in database.measurements]
    if not lines:
        return
    screen = console()
    screen.print("measured:", highlight=False)
    for name, measured in lines:
        dated = f"{measured.what} ({measured.date})" if measured.date else measured.what
        screen.print(f"  {name}: {dated}: {measured.seen}", highlight=False)
        if measured.beyond:
            screen.print(f"    {measured.beyond}", highlight=False)


def _print_advice(profile: ChosenProfile) -> None:
    """What the study advises, and where that differs."""
    screen = console()
    advice = profile.advice
    also = [f"{name} {how}" for name, how in advice.also.items()]
    advised = ", ".join([*advice.advised, *also, *filter(None, [advice.outside])])
    screen.print(f"the study advises for this use case, with its own needs: {advised} ({profile.source})", highlight=False)
    if not profile.differences:
        screen.print("the facts say the same, then and today", highlight=False)
    for difference in profile.differences:
        screen.print(f"  {difference.name}: {difference.what} – {difference.why}", highlight=False)
