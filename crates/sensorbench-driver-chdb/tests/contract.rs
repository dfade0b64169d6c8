//! The driver keeps the driver contract, and does what this project says of it. Run by name alone: pytest passes where the library is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Database, Deadline, Driver, ErrorKind, Intent, Request, Rows, Schema, Sessions, TargetUrl, Value};
use sensorbench_driver_chdb::ChdbDatabase;
use serde_json::json;

const CHDB: ChdbDatabase = ChdbDatabase { find_library };

fn find_library() -> Result<PathBuf, String> {
    std::env::var_os("SENSORBENCH_TEST_CHDB").map(PathBuf::from).ok_or_else(|| "SENSORBENCH_TEST_CHDB is not set".to_owned())
}

fn open(path: &Path) -> Box<dyn Driver> {
    CHDB.open(&TargetUrl::parse(&format!("chdb:{}", path.display())).unwrap()).unwrap()
}

fn schema(schema: serde_json::Value) -> Schema {
    serde_json::from_value(schema).expect("a schema")
}

/// Everything in one test: the engine has one folder open in a process.
#[test]
fn keeps_the_contract_and_does_as_stated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("contract");
    let theirs = path.join("theirs.txt");
    check(&Subject {
        database: &CHDB,
        url: format!("chdb:{}", path.display()),
        schema: serde_json::from_str(include_str!("../../sensorbench-driver-http/tests/clickhouse.json")).unwrap(),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps::default(),
        put_foreign: &|| {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(&theirs, "a thesis").unwrap();
        },
        foreign_rows: &|| {
            let names = std::fs::read_dir(&path).unwrap().map(|entry| format!("{:?}", entry.unwrap().file_name()));
            names.chain([std::fs::read_to_string(&theirs).unwrap()]).collect()
        },
        remove_foreign: &|| std::fs::remove_dir_all(&path).unwrap(),
    });
    types_of_today(&folder.path().join("types"));
    one_folder_at_a_time(folder.path());
    options_and_libraries(folder.path());
}

/// Times of µs, dictionaries and codecs; of two rows of a key the last one stays; rows are not looked through for statements.
fn types_of_today(path: &Path) {
    let column = |name: &str, value_type: &str| json!({"name": name, "type": value_type});
    let columns = json!([column("sensor", "text"), column("time", "timestamp"), column("value", "double")]);
    let of_today = schema(json!({
        "create": {"statements": ["CREATE TABLE t (sensor LowCardinality(String), time DateTime64(6, 'UTC') CODEC(Delta, ZSTD), \
            value Float64 CODEC(Gorilla, LZ4)) ENGINE = ReplacingMergeTree ORDER BY (sensor, time)"]},
        "tables": {"t": columns},
        "operations": [
            {
                "name": "read",
                "columns": columns,
                "statement": {"statement": "SELECT sensor, time, value FROM t FINAL ORDER BY sensor, time"},
            },
            {"name": "write", "parameters": columns, "statement": {"write": "t"}},
        ],
    }));
    let driver = open(path);
    driver.guard(&owner()).create(&of_today, "", Intent::Create).unwrap();
    let Sessions::Blocking(connector) = driver.sessions(&of_today.operations).unwrap() else { panic!("sessions block") };
    let deadline = Arc::new(Deadline::new(Instant::now(), Arc::new(AtomicBool::new(false))));
    let mut session = connector.connect(deadline).unwrap();
    let mut execute = |operation: usize, parameters: &[Value]| {
        let mut request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        session.execute(&mut request).unwrap();
        let rows = request.rows.iter();
        rows.map(|row| (0..row.columns()).map(|place| row.value(place).to_value()).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let row =
        |sensor: &str, time: i64, value: f64| vec![Value::Text(sensor.into()), Value::Timestamp(time), Value::Double(value)];
    let hostile = "\n;\n'\\ -- FORMAT Values (\0);";
    for written in [row("a", 1, 5.0), row("a", 1, 3.0), row(hostile, -1, 0.1 + 0.2)] {
        execute(1, &written);
    }
    assert_eq!(execute(0, &[]), [row(hostile, -1, 0.1 + 0.2), row("a", 1, 3.0)]);
    let said = driver.describe().unwrap();
    assert!(said.database == "chDB" && said.settings["clickhouse"].starts_with("26."), "{said:?}");
}

fn one_folder_at_a_time(folder: &Path) {
    let (first, second) = (open(&folder.join("first")), open(&folder.join("second")));
    let empty = Schema::default();
    first.guard(&owner()).create(&empty, "", Intent::Create).unwrap();
    // Nobody uses the first one now.
    second.guard(&owner()).create(&empty, "", Intent::Create).unwrap();
    let operations = CHDB.no_op().unwrap().operations;
    let Sessions::Blocking(connector) = first.sessions(&operations).unwrap() else { panic!("sessions block") };
    let deadline = Arc::new(Deadline::new(Instant::now(), Arc::new(AtomicBool::new(false))));
    let session = connector.connect(deadline).unwrap();
    let start = Instant::now();
    let refused = second.sessions(&operations).map(drop).and(second.size().map(drop)).unwrap_err();
    assert!(refused.kind() == ErrorKind::Connection && refused.to_string().contains("first"), "{refused}");
    assert!(start.elapsed() > Duration::from_secs(5), "it waits for a moment");
    let refused = first.guard(&owner()).remove().unwrap_err();
    assert!(refused.kind() == ErrorKind::Namespace, "{refused}");
    drop(session);
    second.size().unwrap();
    for driver in [&first, &second] {
        driver.guard(&owner()).remove().unwrap();
    }
    assert!(!folder.join("first").exists() && !folder.join("second").exists());
}

fn options_and_libraries(folder: &Path) {
    let path = folder.join("set");
    let with = |options: &str| CHDB.open(&TargetUrl::parse(&format!("chdb:{}{options}", path.display())).unwrap());
    let driver = with("?max_threads=1&async_insert=0").unwrap();
    driver.guard(&owner()).create(&Schema::default(), "", Intent::Create).unwrap();
    let settings = driver.describe().unwrap().settings;
    assert_eq!((settings["max_threads"].as_str(), settings["async_insert"].as_str()), ("1", "0"));
    for (options, expected) in [("?max_threads=many", "max_threads=many: expected a whole number"), ("?cache=1", "cache")] {
        let refused = with(options).err().expect(options);
        assert!(refused.kind() == ErrorKind::Url && refused.to_string().contains(expected), "{refused}");
    }
    let libc = ChdbDatabase { find_library: || Ok(PathBuf::from("libc.so.6")) };
    let refused = libc.open(&TargetUrl::parse("chdb:x").unwrap()).err().expect("refused");
    assert!(refused.kind() == ErrorKind::Url && refused.to_string().contains("exports no C API of chDB"), "{refused}");
}
