//! Whose a namespace is, and what may be done with it.
//!
//! Targets may be somebody's production. sensorbench works in a namespace of its own, which carries an ownership marker from its creation
//! on. Drivers only say who occupies the namespace; the one table in [`decide`] says what follows, and no driver creates, marks or removes
//! anything without the [`Admission`] that only the [`NamespaceGuard`] gives.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::{Driver, DriverError, Schema};

/// The form of today's markers. Those of earlier versions have no number.
const FORMAT: u32 = 2;

/// What sensorbench writes into a namespace that it creates.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Marker {
    /// The form of the marker.
    #[serde(rename = "sensorbench")]
    format: u32,
    /// The results folder that created the namespace; None in markers of earlier versions, which had none.
    pub owner: Option<Owner>,
    /// When the namespace was created, in seconds since 1970.
    pub created_s: Option<u64>,
    /// What lies there, in the words of whoever loaded it.
    pub fingerprint: String,
}

/// The results folder that a namespace belongs to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Owner {
    /// Its id, which moves with the folder.
    pub id: String,
    /// Where it was when it created the namespace.
    pub folder: String,
}

impl Marker {
    /// The marker that was written as `text`, or None when sensorbench never wrote such a text.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(marker) = serde_json::from_str(text) {
            return Some(marker);
        }
        let earlier = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).ok()?;
        let has = |key: &str| earlier.contains_key(key);
        let is_ours = (has("fingerprint") && has("state")) || ["stress", "ycsb", "cassandra_stress"].into_iter().any(has);
        is_ours.then(|| Self { fingerprint: text.to_owned(), ..Self::default() })
    }

    /// The marker as text, for [`Marker::parse`].
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a marker has string keys")
    }
}

/// Who occupies the namespace of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Occupant {
    /// Nobody: there is no such namespace.
    Absent,
    /// sensorbench, as the marker says.
    Ours(Marker),
    /// Somebody else; what was found, for the message.
    Foreign(String),
}

impl Occupant {
    /// The occupant of a namespace that is there, by the text where a marker would be.
    pub fn by_text(text: Option<&str>, found: impl FnOnce() -> String) -> Self {
        text.and_then(Marker::parse).map_or_else(|| Self::Foreign(found()), Self::Ours)
    }

    /// The same as one of the four that the decision knows.
    fn seen_by(&self, owner: &Owner) -> Holder {
        match self {
            Occupant::Absent => Holder::Nobody,
            Occupant::Foreign(_) => Holder::Foreign,
            Occupant::Ours(marker) if marker.owner.as_ref().is_some_and(|found| found.id == owner.id) => Holder::ThisFolder,
            Occupant::Ours(_) => Holder::AnotherFolder,
        }
    }
}

/// Who holds a namespace, seen from a results folder.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    Nobody,
    ThisFolder,
    AnotherFolder,
    Foreign,
}

/// What a command wants with a namespace.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Create it; whatever is there stays.
    Create,
    /// Use what another results folder created. It is never dropped or loaded again.
    Attach,
    /// Continue what the same results folder created.
    Resume,
    /// Create it in place of what sensorbench created before.
    Replace,
}

/// What the guard decides.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Decision {
    /// There is nothing yet: create it.
    Create,
    /// Remove what sensorbench created, then create.
    Recreate,
    /// Use what is there, and leave it.
    Use,
    /// Use what is there, or recreate it where its loading was cut short.
    UseOrRecreate,
    Refuse(Refusal),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Refusal {
    Foreign,
    EarlierRun,
    AnotherFolder,
    NothingThere,
}

/// The one table: what may be done with a namespace, by who holds it and what is wanted.
fn decide(holder: Holder, intent: Intent) -> Decision {
    match (holder, intent) {
        (Holder::Foreign, _) => Decision::Refuse(Refusal::Foreign),
        (Holder::Nobody, Intent::Attach) => Decision::Refuse(Refusal::NothingThere),
        (Holder::Nobody, Intent::Create | Intent::Resume | Intent::Replace) => Decision::Create,
        (Holder::ThisFolder | Holder::AnotherFolder, Intent::Create) => Decision::Refuse(Refusal::EarlierRun),
        (Holder::ThisFolder | Holder::AnotherFolder, Intent::Attach) => Decision::Use,
        (Holder::ThisFolder | Holder::AnotherFolder, Intent::Replace) => Decision::Recreate,
        (Holder::ThisFolder, Intent::Resume) => Decision::UseOrRecreate,
        (Holder::AnotherFolder, Intent::Resume) => Decision::Refuse(Refusal::AnotherFolder),
    }
}

/// Leave to change a namespace. Only the guard gives it.
#[derive(Debug)]
pub struct Admission {
    replaces: bool,
}

impl Admission {
    /// Whether what sensorbench created there is to be removed first.
    pub fn replaces(&self) -> bool {
        self.replaces
    }
}

/// What stands between a results folder and the namespace of a target.
pub struct NamespaceGuard<'a> {
    driver: &'a dyn Driver,
    owner: &'a Owner,
}

impl dyn Driver + '_ {
    /// The namespace, guarded for a results folder.
    pub fn guard<'a>(&'a self, owner: &'a Owner) -> NamespaceGuard<'a> {
        NamespaceGuard { driver: self, owner }
    }
}

impl NamespaceGuard<'_> {
    /// Fails with a namespace error where the table of decisions refuses, before anything is changed.
    pub fn check(&self, intent: Intent) -> Result<(), DriverError> {
        self.decide(&self.driver.occupant()?, intent).map(drop)
    }

    /// Creates the namespace with the schema's empty tables, and notes what will lie there.
    ///
    /// Fails with a namespace error where the table of decisions refuses; nothing is changed then.
    pub fn create(&self, schema: &Schema, fingerprint: &str, intent: Intent) -> Result<(), DriverError> {
        let occupant = self.driver.occupant()?;
        let replaces = match self.decide(&occupant, intent)? {
            Decision::Create => false,
            Decision::Recreate | Decision::UseOrRecreate => true,
            Decision::Use | Decision::Refuse(_) => return Err(self.refusal(Refusal::EarlierRun, &occupant)),
        };
        let created_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let marker = Marker {
            format: FORMAT,
            owner: Some(self.owner.clone()),
            created_s: Some(created_s),
            fingerprint: fingerprint.to_owned(),
        };
        self.driver.create(schema, &marker, &Admission { replaces })
    }

    /// Uses the tables that are there.
    ///
    /// Fails with a namespace error unless sensorbench created them: this results folder, or, to attach, any.
    pub fn attach(&self, schema: &Schema, intent: Intent) -> Result<(), DriverError> {
        let occupant = self.driver.occupant()?;
        match self.decide(&occupant, intent)? {
            Decision::Use | Decision::UseOrRecreate => self.driver.attach(schema),
            _ => Err(self.refusal(Refusal::NothingThere, &occupant)),
        }
    }

    /// What lies there, or None where sensorbench created nothing.
    pub fn fingerprint(&self) -> Result<Option<String>, DriverError> {
        Ok(self.marker()?.map(|marker| marker.fingerprint))
    }

    /// Notes what lies there. The namespace stays with whoever created it.
    pub fn set_fingerprint(&self, fingerprint: &str) -> Result<(), DriverError> {
        match self.driver.occupant()? {
            Occupant::Ours(marker) => {
                let marker = Marker { format: FORMAT, fingerprint: fingerprint.to_owned(), ..marker };
                self.driver.write_marker(&marker, &Admission { replaces: false })
            }
            occupant @ Occupant::Absent => Err(self.refusal(Refusal::NothingThere, &occupant)),
            occupant @ Occupant::Foreign(_) => Err(self.refusal(Refusal::Foreign, &occupant)),
        }
    }

    /// Removes the namespace if this results folder created it; else nothing is done.
    pub fn remove(&self) -> Result<(), DriverError> {
        match self.driver.occupant()?.seen_by(self.owner) {
            Holder::ThisFolder => self.driver.remove(&Admission { replaces: true }),
            Holder::Nobody | Holder::AnotherFolder | Holder::Foreign => Ok(()),
        }
    }

    /// Removes the namespace, whichever results folder created it. Fails unless sensorbench did.
    pub fn clean(&self) -> Result<(), DriverError> {
        match self.driver.occupant()? {
            Occupant::Ours(_) => self.driver.remove(&Admission { replaces: true }),
            occupant @ Occupant::Absent => Err(self.refusal(Refusal::NothingThere, &occupant)),
            occupant @ Occupant::Foreign(_) => Err(self.refusal(Refusal::Foreign, &occupant)),
        }
    }

    /// The marker, or None where sensorbench created nothing.
    pub fn marker(&self) -> Result<Option<Marker>, DriverError> {
        Ok(match self.driver.occupant()? {
            Occupant::Ours(marker) => Some(marker),
            Occupant::Absent | Occupant::Foreign(_) => None,
        })
    }

    fn decide(&self, occupant: &Occupant, intent: Intent) -> Result<Decision, DriverError> {
        match decide(occupant.seen_by(self.owner), intent) {
            Decision::Refuse(refusal) => Err(self.refusal(refusal, occupant)),
            decision => Ok(decision),
        }
    }

    fn refusal(&self, refusal: Refusal, occupant: &Occupant) -> DriverError {
        let (place, elsewhere) = (self.driver.namespace(), self.driver.elsewhere());
        let creator = match occupant {
            Occupant::Ours(Marker { owner: Some(owner), .. }) => format!("the results folder {}", owner.folder),
            _ => "an earlier version of sensorbench".to_owned(),
        };
        DriverError::Namespace(match (refusal, occupant) {
            (Refusal::Foreign, Occupant::Foreign(found)) => {
                format!("{place}: {found}. sensorbench did not create it and never changes or deletes it; {elsewhere}")
            }
            (Refusal::NothingThere, _) => format!("{place}: sensorbench created nothing there; load it first"),
            (Refusal::AnotherFolder, _) => {
                format!("{place} holds data of {creator}; --resume continues only what its own folder created: {elsewhere}")
            }
            _ => format!("{place} holds data of {creator}; give --replace to load it again, or {elsewhere}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_namespaces_are_refused_whatever_is_wanted() {
        for intent in [Intent::Create, Intent::Attach, Intent::Resume, Intent::Replace] {
            assert_eq!(decide(Holder::Foreign, intent), Decision::Refuse(Refusal::Foreign));
        }
    }

    #[test]
    fn only_replacing_removes_what_another_folder_created() {
        for intent in [Intent::Create, Intent::Attach, Intent::Resume] {
            assert!(!matches!(decide(Holder::AnotherFolder, intent), Decision::Recreate | Decision::UseOrRecreate));
        }
        assert_eq!(decide(Holder::AnotherFolder, Intent::Replace), Decision::Recreate);
    }

    #[test]
    fn markers_are_read_as_they_were_written() {
        let owner = Owner { id: "7".to_owned(), folder: "results/a".to_owned() };
        let marker = Marker { format: FORMAT, owner: Some(owner), created_s: Some(1), fingerprint: "{\"a\": 1}".to_owned() };
        assert_eq!(Marker::parse(&marker.to_text()), Some(marker));
    }

    #[test]
    fn markers_of_earlier_versions_have_no_owner() {
        for text in [r#"{"fingerprint": "a", "state": "settled"}"#, r#"{"stress": {}}"#, r#"{"ycsb": [], "state": "loaded"}"#] {
            let marker = Marker::parse(text).expect(text);
            assert_eq!((marker.owner, marker.fingerprint.as_str()), (None, text));
        }
    }

    #[test]
    fn what_others_wrote_is_no_marker() {
        for text in ["", "x", "7", "null", "[]", "{}", r#"{"fingerprint": "a"}"#, r#"{"state": "settled"}"#] {
            assert_eq!(Marker::parse(text), None, "{text}");
        }
    }
}
