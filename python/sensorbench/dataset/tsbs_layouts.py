"""What TSBS's own files hold of each use case, and the hosts or trucks that their rows name."""

from dataclasses import dataclass

import pyarrow as pa

from sensorbench.dataset.dataset import CPU, CPU_READINGS, TRUCK_READINGS, Readings
from sensorbench.dataset.tsbs import CPU_FIELDS, CPU_SCHEMA, HOST_SCHEMA, HOST_TAGS, HOSTS, REGIONS, narrow_view
from sensorbench.dataset.tsbs_iot import FIELDS, FLEETS, SCHEMAS, TRUCK_NUMBERS, TRUCK_SCHEMA, TRUCK_TEXTS, TRUCKS, narrow_form


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
        narrow: SQL of the readings, one a field.

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
    narrow: str


LAYOUTS = (
    Layout(
        what="CPU metrics of hosts",
        readings=CPU_READINGS,
        devices=HOSTS,
        device_schema=HOST_SCHEMA,
        prefix="host_",
        tags=("hostname", *HOST_TAGS[1:]),
        numbers=(),
        site_tag="region",
        sites=REGIONS,
        site_is="the number of the host's region, 1 to 9, in TSBS's order",
        has_gaps=False,
        # A row may lack fields.
        schemas={
            CPU: pa.schema([field if field.name in CPU_READINGS.key else field.with_nullable(True) for field in CPU_SCHEMA])
        },
        fields={CPU: CPU_FIELDS},
        narrow=narrow_view(CPU, CPU_FIELDS),
    ),
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
        narrow=narrow_form(),
    ),
)


class Devices:
    """The hosts or trucks that rows named, by their tags as the files write them."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._keys: dict[bytes, tuple[int, int] | None] = {}
        self._tags: dict[int, dict[str, str]] = {}

    def learn(self, tags: bytes) -> None:
        """Takes over what tags say of a device, where they make sense."""
        try:
            self._merge(tags)
        except ValueError:
            # It is said where the row is taken.
            return

    def key(self, tags: bytes) -> tuple[int, int] | None:
        """Site and zone of a device by its tags; None where they do not name it. Raises ValueError for tags that no device of TSBS has."""
        if tags not in self._keys:
            self._keys[tags] = self._key(tags)
        return self._keys[tags]

    def _key(self, tags: bytes) -> tuple[int, int] | None:
        zone = self._merge(tags)
        if zone is None:
            return None
        known = self._tags[zone]
        missing = next((tag for tag in self._layout.tags if tag not in known), None)
        if missing is not None:
            raise ValueError(f"no row of {self._layout.prefix}{zone} has the tag {missing}; expected each tag in some row")
        return self._site(known[self._layout.site_tag]), zone

    def _merge(self, tags: bytes) -> int | None:
        """The number of the device, of which it is known now what tags say. Raises ValueError for tags that make no sense."""
        layout = self._layout
        pairs = [entry.partition("=") for entry in tags.decode("utf-8", "replace").split(",")]
        values = {name: value for name, _, value in pairs if name in layout.tags and value}
        if not layout.has_gaps and (missing := next((tag for tag in layout.tags if tag not in values), None)) is not None:
            raise ValueError(f"the tag {missing} is missing; expected the tags {', '.join(layout.tags)}")
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

    def table(self) -> pa.Table:
        """All of them that have all tags, by their numbers."""
        layout = self._layout
        whole = [zone for zone in sorted(self._tags) if len(self._tags[zone]) == len(layout.tags)]
        columns: list[list[int | float | str]] = [[self._site(self._tags[zone][layout.site_tag]) for zone in whole], [*whole]]
        for tag in layout.tags:
            columns.append([float(self._tags[zone][tag]) if tag in layout.numbers else self._tags[zone][tag] for zone in whole])
        arrays = [pa.array(values, of.type) for values, of in zip(columns, layout.device_schema, strict=True)]
        return pa.table(arrays, schema=layout.device_schema)
