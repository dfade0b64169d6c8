"""Pictures of studies: fronts that show what is significantly dominated, and effects of factors."""

import json
from typing import Any

import vl_convert

from sensorbench.analysis.pareto import Box, significantly_dominated
from sensorbench.report.effects import effects
from sensorbench.report.fronts import front
from sensorbench.report.sections import own_sections
from sensorbench.results.page import Chart, Page
from sensorbench.results.summary.comparison import StudySection
from sensorbench.studies.pictures import Effect, Point, with_fronts


def many_points() -> list[Point]:
    """Sixty points of four systems, of which one has no interval."""
    places = [(10.0 + 37 * n % 61, 10.0 + 23 * n % 53) for n in range(60)]
    return [
        Point(f"layout number {n}", f"system {n % 4}", x, None if n == 7 else x - 2, x + 2, y, y - 2, y + 2)
        for n, (x, y) in enumerate(places)
    ]


def drawn(specification: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    """The data of the layer with a mark."""
    layer = next(entry for entry in specification["layer"] if entry["mark"]["type"] == mark)
    data = layer.get("data", specification.get("data"))
    return specification["datasets"][data["name"]] if "name" in data else data["values"]


def test_each_group_has_a_front_of_its_own() -> None:
    low, high = (Point("a", group, value, None, None, value, None, None) for group, value in (("one", 1.0), ("two", 9.0)))
    assert [point.is_on_front for point in with_fronts([low, high])] == [True, True]
    beaten = Point("b", "two", 2.0, None, None, 2.0, None, None)
    assert [point.is_on_front for point in with_fronts([low, high, beaten])] == [True, True, False]


def test_a_front_tells_what_is_surely_dominated() -> None:
    points = with_fronts(many_points())
    specification = front(json.loads(json.dumps({"x_title": "x", "y_title": "y", "points": [vars(point) for point in points]})))
    shown = {point["label"]: point["state"] for point in drawn(specification, "point")}
    assert len(shown) == 60
    for group in {point.group for point in points}:
        of_group = [point for point in points if point.group == group]
        boxes = [
            Box(point.x_low, point.x_high, point.y_low, point.y_high)
            if None not in (point.x_low, point.x_high, point.y_low, point.y_high)
            else None
            for point in of_group
        ]
        for point, is_sure in zip(of_group, significantly_dominated(boxes), strict=True):
            expected = (
                "on the front" if point.is_on_front else "significantly dominated" if is_sure else "not known to be dominated"
            )
            assert shown[point.label] == expected
    assert set(shown.values()) == {"on the front", "not known to be dominated", "significantly dominated"}
    labels = drawn(specification, "text")
    assert labels
    assert {label["label"] for label in labels} <= {name for name, state in shown.items() if state == "on the front"}
    assert vl_convert.vegalite_to_svg({**specification, "width": 900}).count("layout number") >= len(labels)


def section_with(picture: dict[str, Any]) -> StudySection:
    return StudySection(title="", text="", columns=[], rows=[], front=picture)


def test_points_at_zero_have_no_place_on_a_logarithmic_axis() -> None:
    points = [vars(point) for point in many_points()[:2]]
    points[0] = {**points[0], "x": 0.0}
    picture = {"x_title": "x", "y_title": "y", "points": points}
    (shown,) = charts_of(section_with(picture))
    assert shown.name == "front-1"
    assert [entry["label"] for entry in drawn(shown.specification, "point")] == ["layout number 1"]
    assert charts_of(section_with({**picture, "points": points[:1]})) == []


def charts_of(section: StudySection) -> list[Chart]:
    return Page("", "", [], own_sections([section]), "").charts


def test_effects_are_rows_below_their_factors() -> None:
    found = [
        Effect(factor, change, operation, ratio, low, high, 3)
        for factor in ("metadata", "row width")
        for change, operation, ratio, low, high in (
            ("none → own table", "write", 2.0, 1.5, 2.5),
            ("none → own table", "read", 0.9, 0.5, 90.0),
            ("same → same", "read", 1.0, None, None),
        )
    ]
    specification = effects([vars(effect) for effect in found])
    rows = drawn(specification, "point")
    names = next(entry for entry in specification["layer"] if entry["mark"]["type"] == "point")["encoding"]["y"]["scale"][
        "domain"
    ]
    assert [name[4:] for name in names][:4] == ["metadata", *(f"{effect.change} · {effect.operation}" for effect in found[:3])]
    assert len(names) == 8 == len(set(names))
    assert [row["state"] for row in rows[:3]] == ["a significant change", "not known to be one", "not known to be one"]
    assert rows[1]["high_shown"] < 90.0, "a wide interval is cut, so that it does not press the others together"
    assert vl_convert.vegalite_to_svg({**specification, "width": 900}).count("none → own table") >= 4
