//! Every cell of occupant × intent: what is somebody else's stays as it is, and what is ours goes only when that is wanted.

use super::subject::{Subject, load, open, reading_rows, readings, schema};
use crate::{Driver, DriverError, ErrorKind, Intent, NamespaceGuard, Owner, TargetUrl};

/// What the suite notes in namespaces that it creates.
const FINGERPRINT: &str = "contract";
const INTENTS: [(Intent, &str); 4] =
    [(Intent::Create, "create"), (Intent::Attach, "attach"), (Intent::Resume, "resume"), (Intent::Replace, "replace")];

/// The results folder in whose name the suite, and tests of drivers, work.
pub fn owner() -> Owner {
    named("this")
}

fn another() -> Owner {
    named("another")
}

fn named(name: &str) -> Owner {
    Owner { id: format!("contract-{name}"), folder: format!("results/{name}") }
}

/// What a cell must come to.
#[derive(Clone, Copy, PartialEq)]
enum Expected {
    /// An empty namespace of ours.
    Created,
    /// As created, in place of what was ours.
    Recreated,
    /// What is there is used.
    Kept,
    /// An error, and nothing is changed.
    Refused,
}

impl Expected {
    fn word(self) -> &'static str {
        match self {
            Expected::Created => "created",
            Expected::Recreated => "recreated",
            Expected::Kept => "kept",
            Expected::Refused => "refused",
        }
    }
}

/// The four occupants, each with what the four intents come to, in the order of [`INTENTS`].
const TABLE: [(&str, [Expected; 4]); 4] = [
    ("absent", [Expected::Created, Expected::Refused, Expected::Created, Expected::Created]),
    ("ours, of this folder", [Expected::Refused, Expected::Kept, Expected::Kept, Expected::Recreated]),
    ("ours, of another", [Expected::Refused, Expected::Kept, Expected::Refused, Expected::Recreated]),
    ("foreign", [Expected::Refused, Expected::Refused, Expected::Refused, Expected::Refused]),
];

/// Goes through the whole table, and prints it with what was seen. Nothing of the suite is at the target before and afterwards.
pub fn keeps_to_the_table_of_occupants_and_intents(subject: &Subject) {
    let database = subject.database.name();
    println!("{:<24} {}", format!("{database}: occupant"), INTENTS.map(|(_, word)| format!("{word:<10}")).join(""));
    for (occupant, expected) in TABLE {
        let mut seen = Vec::new();
        for ((intent, word), expected) in INTENTS.into_iter().zip(expected) {
            let cell = format!("{database}: {occupant} × {word}");
            check_cell(subject, occupant, intent, expected, &cell);
            seen.push(format!("{:<10}", expected.word()));
        }
        println!("{occupant:<24} {}", seen.join(""));
    }
    leaves_what_is_foreign(subject);
    resuming_loads_again_only_what_the_same_folder_created(subject);
}

fn check_cell(subject: &Subject, occupant: &str, intent: Intent, expected: Expected, cell: &str) {
    let driver = open(subject);
    match occupant {
        "absent" => {}
        "foreign" => (subject.put_foreign)(),
        "ours, of this folder" => put_ours(subject, driver.as_ref(), &owner()),
        _ => put_ours(subject, driver.as_ref(), &another()),
    }
    let foreign = (occupant == "foreign").then(|| (subject.foreign_rows)());
    assert!(foreign.as_ref().is_none_or(|rows| !rows.is_empty()), "{cell}: what is foreign has rows");
    let (owner, schema) = (owner(), schema(subject));
    let guard = driver.guard(&owner);
    // To resume is to use what is there, and to create what is not.
    let outcome = match (intent, occupant) {
        (Intent::Attach, _) | (Intent::Resume, "ours, of this folder" | "ours, of another") => guard.attach(&schema, intent),
        _ => guard.create(&schema, FINGERPRINT, intent),
    };
    if expected == Expected::Refused {
        assert_refused(outcome, occupant, cell);
    } else {
        outcome.unwrap_or_else(|error| panic!("{cell}: {error}"));
    }
    match (expected, occupant) {
        (Expected::Refused, "absent") => assert_eq!(guard.marker().unwrap(), None, "{cell}"),
        (Expected::Created | Expected::Recreated, _) => {
            assert_eq!(driver.count("readings").unwrap(), 0, "{cell}: the tables are empty");
            assert_eq!(guard.marker().unwrap().and_then(|marker| marker.owner), Some(owner.clone()), "{cell}");
        }
        _ => {}
    }
    // The next command has a driver of its own; an embedded database lets in one at a time.
    drop(driver);
    match (expected, occupant) {
        (_, "foreign") => {
            assert_eq!((subject.foreign_rows)(), foreign.expect("rows"), "{cell}: what is foreign is as it was");
            (subject.remove_foreign)();
            return;
        }
        (Expected::Refused | Expected::Kept, "ours, of this folder" | "ours, of another") => {
            assert_ours_is_intact(subject, occupant, cell);
        }
        _ => {}
    }
    clean(&open(subject).guard(&owner));
}

/// As a server lists it, or the path of an embedded database.
fn namespace_of(subject: &Subject) -> String {
    let url = TargetUrl::parse(&subject.url).expect("a URL");
    if subject.database.about().embedded { url.rest } else { crate::namespace_of(&url).expect("a namespace") }
}

fn put_ours(subject: &Subject, driver: &dyn Driver, owner: &Owner) {
    driver.guard(owner).create(&schema(subject), FINGERPRINT, Intent::Create).expect("the namespace is free");
    let rows = readings(subject);
    assert_eq!(load(driver, "readings", vec![reading_rows(subject, &rows[..2])]).expect("two readings load"), 2);
}

fn assert_ours_is_intact(subject: &Subject, occupant: &str, cell: &str) {
    let driver = open(subject);
    let owner = if occupant == "ours, of this folder" { owner() } else { another() };
    let guard = driver.guard(&owner);
    let marker = guard.marker().unwrap().expect("the marker is there");
    assert_eq!((marker.owner.as_ref(), marker.fingerprint.as_str()), (Some(&owner), FINGERPRINT), "{cell}");
    guard.attach(&schema(subject), Intent::Attach).expect("what is ours can be used");
    assert_eq!(driver.count("readings").unwrap(), 2, "{cell}: the rows are there");
}

fn assert_refused(outcome: Result<(), DriverError>, occupant: &str, cell: &str) {
    let error = outcome.expect_err(cell);
    assert_eq!(error.kind(), ErrorKind::Namespace, "{cell}: {error}");
    assert!(occupant != "foreign" || !error.to_string().contains("--replace"), "{cell} must not offer to delete: {error}");
}

fn clean(guard: &NamespaceGuard) {
    if guard.marker().unwrap().is_some() {
        guard.clean().expect("what is ours can be removed");
    }
    assert_eq!(guard.marker().unwrap(), None);
}

/// Neither a note nor a removal reaches what is foreign, nor is it listed as ours.
fn leaves_what_is_foreign(subject: &Subject) {
    (subject.put_foreign)();
    let before = (subject.foreign_rows)();
    let (driver, owner) = (open(subject), owner());
    let guard = driver.guard(&owner);
    assert_eq!(guard.fingerprint().unwrap(), None);
    assert_eq!(guard.set_fingerprint("ours").expect_err("it is not ours").kind(), ErrorKind::Namespace);
    assert_eq!(guard.clean().expect_err("it is not ours").kind(), ErrorKind::Namespace);
    guard.remove().expect("there is nothing of ours to remove");
    let listed = driver.namespaces().unwrap();
    assert!(!listed.contains(&namespace_of(subject)), "{listed:?}");
    assert_eq!((subject.foreign_rows)(), before);
    (subject.remove_foreign)();
}

fn resuming_loads_again_only_what_the_same_folder_created(subject: &Subject) {
    let (this, another, schema) = (owner(), another(), schema(subject));
    let driver = open(subject);
    put_ours(subject, driver.as_ref(), &another);
    assert_eq!(driver.guard(&this).create(&schema, "", Intent::Resume).unwrap_err().kind(), ErrorKind::Namespace);
    // Attached, it may be noted what lies there, but it stays another's, and is not removed.
    driver.guard(&this).set_fingerprint(FINGERPRINT).unwrap();
    driver.guard(&this).remove().unwrap();
    drop(driver);
    assert_ours_is_intact(subject, "ours, of another", "after set_fingerprint and remove by this folder");
    let driver = open(subject);
    assert_eq!(driver.guard(&this).create(&schema, "", Intent::Attach).unwrap_err().kind(), ErrorKind::Namespace);
    driver.guard(&another).create(&schema, "again", Intent::Resume).expect("its own folder loads it again");
    assert_eq!(driver.count("readings").unwrap(), 0);
    let listed = driver.namespaces().unwrap();
    assert!(listed.contains(&namespace_of(subject)), "{listed:?}");
    driver.guard(&another).remove().unwrap();
    assert_eq!(driver.guard(&another).marker().unwrap(), None);
}
