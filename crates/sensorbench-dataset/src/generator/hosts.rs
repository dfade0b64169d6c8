//! Hosts with the tags that TSBS (Time Series Benchmark Suite) gives them, each tag evenly distributed.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use sensorbench_workload::Stream;

use super::parallel::Parts;

/// Hosts that make a part.
const HOSTS_A_PART: u64 = 16 * 1024;

/// Regions, and the letters of their data centers. A site is the number of a region, from 1 on.
const REGIONS: [(&str, &str); 9] = [
    ("us-east-1", "abce"),
    ("us-west-1", "ab"),
    ("us-west-2", "abc"),
    ("eu-west-1", "abc"),
    ("eu-central-1", "ab"),
    ("ap-southeast-1", "ab"),
    ("ap-southeast-2", "ab"),
    ("ap-northeast-1", "ac"),
    ("sa-east-1", "abc"),
];
const OS: [&str; 3] = ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"];
const ARCH: [&str; 2] = ["x64", "x86"];
const TEAM: [&str; 4] = ["SF", "NYC", "LON", "CHI"];
const ENVIRONMENT: [&str; 3] = ["production", "staging", "test"];
const COLUMNS: [&str; 10] =
    ["name", "region", "datacenter", "rack", "os", "arch", "team", "service", "service_version", "service_environment"];
const FILE_SYSTEMS: [&str; 3] = ["ext3", "ext4", "btrfs"];
/// Tags that single measurements have, with the measurement before them.
const OF_MEASUREMENTS: [&str; 8] =
    ["diskio_serial", "disk_path", "disk_fstype", "net_interface", "nginx_port", "nginx_server", "redis_port", "redis_server"];

/// What the stream of a seed is used for, besides walks.
const TAGS: u64 = 0;

/// Hosts as a generator: their tags are functions of the seed and their number.
pub struct Hosts {
    hosts: u64,
    stream: Stream,
    columns: Vec<&'static str>,
}

impl Hosts {
    /// This many hosts from a seed, also with the tags that single measurements have, if `of_measurements`.
    pub fn new(hosts: u64, seed: u64, of_measurements: bool) -> Self {
        let more: &[&str] = if of_measurements { &OF_MEASUREMENTS } else { &[] };
        Self { hosts, stream: Stream::new(seed), columns: [&COLUMNS[..], more].concat() }
    }

    /// The values of all columns of a host, whichever are given out.
    fn tags(&self, host: u64) -> [String; COLUMNS.len() + OF_MEASUREMENTS.len()] {
        let tags = self.stream.split(TAGS).split(host);
        let (region, letters) = REGIONS[region_of(self.stream, host)];
        let letter = tags.below(1, letters.len() as u64) as usize;
        let choice = |number: u64, values: &[&str]| values[tags.below(number, values.len() as u64) as usize].to_owned();
        let thousand = |number: u64| tags.below(number, 1000);
        let port = |number: u64| (1024 + tags.below(number, 20_000)).to_string();
        [
            format!("host_{host}"),
            region.to_owned(),
            format!("{region}{}", &letters[letter..=letter]),
            tags.below(2, 100).to_string(),
            choice(3, &OS),
            choice(4, &ARCH),
            choice(5, &TEAM),
            tags.below(6, 20).to_string(),
            tags.below(7, 2).to_string(),
            choice(8, &ENVIRONMENT),
            format!("{:03}-{:03}-{:03}", thousand(9), thousand(10), thousand(11)),
            format!("/dev/sda{}", tags.below(12, 10)),
            choice(13, &FILE_SYSTEMS),
            format!("eth{}", tags.below(14, 4)),
            port(15),
            format!("nginx_{}", tags.below(16, 100_000)),
            port(17),
            format!("redis_{}", tags.below(18, 100_000)),
        ]
    }
}

fn region_of(stream: Stream, host: u64) -> usize {
    stream.split(TAGS).split(host).below(0, REGIONS.len() as u64) as usize
}

/// The site of a host, the number of its region, by the stream of the seed.
pub(super) fn site_of(stream: Stream, host: u64) -> i32 {
    region_of(stream, host) as i32 + 1
}

impl Parts for Hosts {
    fn parts(&self) -> usize {
        self.hosts.div_ceil(HOSTS_A_PART) as usize
    }

    fn part(&self, number: usize) -> RecordBatch {
        let first = number as u64 * HOSTS_A_PART;
        let hosts = first..(first + HOSTS_A_PART).min(self.hosts);
        let tags: Vec<_> = hosts.clone().map(|host| self.tags(host)).collect();
        let sites: Int32Array = hosts.clone().map(|host| site_of(self.stream, host)).collect();
        let zones: Int32Array = hosts.map(|host| host as i32).collect();
        let texts = (0..self.columns.len())
            .map(|column| Arc::new(tags.iter().map(|tags| Some(tags[column].as_str())).collect::<StringArray>()) as ArrayRef);
        let columns = [Arc::new(sites) as ArrayRef, Arc::new(zones)].into_iter().chain(texts).collect();
        RecordBatch::try_new(self.schema(), columns).expect("columns of the schema, of one length")
    }

    fn schema(&self) -> SchemaRef {
        let keys = ["site", "zone"].map(|name| Field::new(name, DataType::Int32, false));
        let texts = self.columns.iter().map(|name| Field::new(*name, DataType::Utf8, false));
        Arc::new(Schema::new(keys.into_iter().chain(texts).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;

    use super::*;

    fn texts(batch: &RecordBatch, column: usize) -> Vec<&str> {
        batch.column(column).as_string::<i32>().iter().map(Option::unwrap).collect()
    }

    #[test]
    fn each_tag_has_all_its_values_about_equally_often() {
        let hosts = Hosts::new(16_000, 42, false).part(0);
        let values = [16_000, 9, 23, 100, 3, 2, 4, 20, 2, 3];
        for (column, values) in (2..).zip(values) {
            let mut counts = BTreeMap::new();
            texts(&hosts, column).into_iter().for_each(|text| *counts.entry(text).or_insert(0) += 1);
            assert_eq!(counts.len(), values, "{}", COLUMNS[column - 2]);
            // Data centers are evenly distributed within their regions, which have 2 to 4.
            let expected = if values == 23 { 16_000 / 36 } else { 16_000 / values };
            assert!(counts.values().all(|count| *count >= expected * 6 / 10), "{counts:?}");
        }
    }

    #[test]
    fn tags_of_measurements_come_after_those_of_hosts_which_stay_as_they_are() {
        let (plain, more) = (Hosts::new(16_000, 42, false).part(0), Hosts::new(16_000, 42, true).part(0));
        assert_eq!((plain.num_columns(), more.num_columns()), (12, 20));
        for column in 0..12 {
            assert_eq!(plain.column(column), more.column(column));
        }
        let values = [(13, 10), (14, 3), (15, 4)];
        for (column, values) in values {
            let different: BTreeSet<_> = texts(&more, column).into_iter().collect();
            assert_eq!(different.len(), values);
        }
        for column in [16, 18] {
            let ports: Vec<u32> = texts(&more, column).iter().map(|port| port.parse().unwrap()).collect();
            assert!(ports.iter().all(|port| (1024..21_024).contains(port)));
            assert!(*ports.iter().min().unwrap() < 1100 && *ports.iter().max().unwrap() > 20_900);
        }
        assert!(texts(&more, 12).iter().all(|serial| serial.len() == 11));
        assert!(texts(&more, 17)[0].starts_with("nginx_") && texts(&more, 19)[0].starts_with("redis_"));
    }

    #[test]
    fn a_site_is_a_region_and_a_data_center_lies_in_it() {
        let hosts = Hosts::new(2000, 7, false).part(0);
        let sites = hosts.column(0).as_primitive::<Int32Type>().values();
        for ((site, region), center) in sites.iter().zip(texts(&hosts, 3)).zip(texts(&hosts, 4)) {
            assert_eq!(REGIONS[*site as usize - 1].0, region);
            assert_eq!(&center[..center.len() - 1], region);
        }
        assert_eq!(sites.iter().collect::<BTreeSet<_>>().len(), 9);
    }

    #[test]
    fn hosts_of_a_later_part_are_those_of_one_large_part() {
        let hosts = Hosts::new(HOSTS_A_PART + 3, 42, false);
        assert_eq!((hosts.parts(), hosts.part(1).num_rows()), (2, 3));
        assert_eq!(texts(&hosts.part(1), 2), ["host_16384", "host_16385", "host_16386"]);
    }
}
