"""What TSBS's own files hold of each use case, and the hosts or trucks that their rows name."""

from dataclasses import dataclass

import pyarrow as pa

from sensorbench.dataset import tsbs_devops
from sensorbench.dataset.dataset import CPU, CPU_READINGS, SERVER_READINGS, TRUCK_READINGS, Readings
from sensorbench.dataset.tsbs import (
    CPU_SINGLE,
    HOST_SCHEMA,
    HOST_TAGS,
    HOSTS,
    REGIONS,
    SITE_IS,
    cpu_fields,
    measurement_schema,
    narrow_view,
)
from sensorbench.dataset.tsbs_devops import OWN_TAGS, own_tag
from sensorbench.dataset.tsbs_iot import FIELDS, FLEETS, SCHEMAS, TRUCK_NUMBERS, TRUCK_SCHEMA, TRUCK_TEXTS, TRUCKS


@dataclass(frozen=True)
class Layout:
    """What files of a use case hold.

    Attributes:
        what: what is measured.
        readings: the relation of the rows, and what lies beside it.
        devices: the relation of hosts or trucks.
        device_schema: its columns.
        prefix: how the name of a device begins, before its number.
        tags: as the files call them, in their order; the first is the name.
        numbers: of the tags those that are numbers, which line protocol has as fields.
        site_tag: the tag that the site is of.
        sites: its values, from site 1 on.
        site_is: what a site is.
        has_gaps: whether rows may lack a tag, and come in any order.
        schemas: the columns of each measurement, in TSBS's order.
        fields: the fields of each measurement.
        own_tags: tags that rows of a measurement have besides, by measurement.

    """

    what: str
    readings: Readings
    devices: str
    device_schema: pa.Schema
    prefix: str
    tags: tuple[str, ...]
    numbers: tuple[str, ...]
    site_tag: str
    sites: tuple[str, ...]
    site_is: str
    has_gaps: bool
    schemas: dict[str, pa.Schema]
    fields: dict[str, tuple[str, ...]]
    own_tags: dict[str, tuple[str, ...]]

    def narrow(self) -> str:
        """SQL of the readings, one a field."""
        views = (narrow_view(name, fields, *self.readings.valueless) for name, fields in self.fields.items())
        return " UNION ALL ".join(views)

    def with_cpu_alone(self) -> "Layout":
        """The layout of files of servers that have rows of their CPU alone."""
        return _servers(CPU_READINGS, HOST_SCHEMA, {CPU: self.fields[CPU]}, {})


def _servers(
    readings: Readings, device_schema: pa.Schema, fields: dict[str, tuple[str, ...]], own_tags: dict[str, tuple[str, ...]]
) -> Layout:
    """The layout of files with measurements of servers."""
    return Layout(
        what="metrics of servers" if len(fields) > 1 else "CPU metrics of servers",
        readings=readings,
        devices=HOSTS,
        device_schema=device_schema,
        prefix="host_",
        tags=("hostname", *HOST_TAGS[1:]),
        numbers=(),
        site_tag="region",
        sites=REGIONS,
        site_is=SITE_IS,
        has_gaps=False,
        # A row may lack fields.
        schemas={name: measurement_schema(of, nullable=True) for name, of in fields.items()},
        fields=fields,
        own_tags=own_tags,
    )


# Of servers with one CPU metric, and of all others, whose files may have rows of CPU metrics alone.
SINGLE = _servers(CPU_READINGS, HOST_SCHEMA, {CPU: cpu_fields(CPU_SINGLE)}, {})
SERVERS = _servers(SERVER_READINGS, tsbs_devops.host_schema(nullable=True), tsbs_devops.FIELDS, OWN_TAGS)
LAYOUTS = (
    SERVERS,
    Layout(
        what="readings and diagnostics of trucks",
        readings=TRUCK_READINGS,
        devices=TRUCKS,
        device_schema=TRUCK_SCHEMA,
        prefix="truck_",
        tags=(*TRUCK_TEXTS, *TRUCK_NUMBERS),
        numbers=TRUCK_NUMBERS,
        site_tag="fleet",
        sites=FLEETS,
        site_is="the number of the truck's fleet, 1 to 4, in TSBS's order",
        has_gaps=True,
        schemas=SCHEMAS,
        fields=FIELDS,
        own_tags={},
    ),
)


class Devices:
    """The hosts or trucks that rows named, by their tags as the files write them."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._keys: dict[tuple[str, bytes], tuple[int, int] | None] = {}
        self._tags: dict[int, dict[str, str]] = {}

    def learn(self, measurement: str, tags: bytes) -> None:
        """Takes over what tags of a row say of a device, where they make sense."""
        try:
            self._merge(measurement, tags)
        except ValueError:
            # It is said where the row is taken.
            return

    def key(self, measurement: str, tags: bytes) -> tuple[int, int] | None:
        """Site and zone of a device by the tags of a row; None if they do not name it. Raises ValueError for tags that no device of TSBS has."""
        known = (measurement, tags)
        if known not in self._keys:
            self._keys[known] = self._key(measurement, tags)
        return self._keys[known]

    def _key(self, measurement: str, tags: bytes) -> tuple[int, int] | None:
        zone = self._merge(measurement, tags)
        if zone is None:
            return None
        known = self._tags[zone]
        missing = next((tag for tag in self._layout.tags if tag not in known), None)
        if missing is not None:
            raise ValueError(f"no row of {self._layout.prefix}{zone} has the tag {missing}; expected each tag in some row")
        return self._site(known[self._layout.site_tag]), zone

    def _merge(self, measurement: str, tags: bytes) -> int | None:
        """The number of the device, of which it is known now what tags say. Raises ValueError for tags that make no sense."""
        layout = self._layout
        pairs = [entry.partition("=") for entry in tags.decode("utf-8", "replace").split(",")]
        values = {name: value for name, _, value in pairs if name in layout.tags and value}
        if not layout.has_gaps and (missing := next((tag for tag in layout.tags if tag not in values), None)) is not None:
            raise ValueError(f"the tag {missing} is missing; expected the tags {', '.join(layout.tags)}")
        own = layout.own_tags.get(measurement, ())
        values |= {own_tag(measurement, name): value for name, _, value in pairs if name in own and value}
        name_tag = layout.tags[0]
        if name_tag not in values:
            return None
        number = values[name_tag].removeprefix(layout.prefix)
        is_number = number.isascii() and number.isdigit() and len(number) < 10 and str(int(number)) == number
        if not is_number or number == values[name_tag]:
            raise ValueError(f"{name_tag}={values[name_tag]}; expected {layout.prefix} and a number")
        if layout.site_tag in values:
            self._site(values[layout.site_tag])
        for tag in layout.numbers:
            float(values.get(tag, 0))
        known = self._tags.get(int(number), {})
        if any(known.get(tag, value) != value for tag, value in values.items()):
            raise ValueError(
                f"{values[name_tag]} has other tags than in a row before; expected one set of tags for each {layout.prefix[:-1]}"
            )
        self._tags[int(number)] = known | values
        return int(number)

    def _site(self, text: str) -> int:
        if text not in self._layout.sites:
            raise ValueError(f"{self._layout.site_tag}={text}; expected one of {', '.join(self._layout.sites)}")
        return self._layout.sites.index(text) + 1

    def table(self, layout: Layout) -> pa.Table:
        """All of them that have all tags, by their numbers, with the columns of a layout. A tag of a measurement that a device has no rows of is
        null.
        """
        whole = [zone for zone in sorted(self._tags) if all(tag in self._tags[zone] for tag in layout.tags)]
        columns: list[list[int | float | str | None]] = [
            [self._site(self._tags[zone][layout.site_tag]) for zone in whole],
            [*whole],
        ]
        for tag in layout.tags:
            columns.append([float(self._tags[zone][tag]) if tag in layout.numbers else self._tags[zone][tag] for zone in whole])
        for measurement, tags in layout.own_tags.items():
            columns += [[self._tags[zone].get(own_tag(measurement, tag)) for zone in whole] for tag in tags]
        arrays = [pa.array(values, of.type) for values, of in zip(columns, layout.device_schema, strict=True)]
        return pa.table(arrays, schema=layout.device_schema)
