//! What may be done with a namespace: the one table in [`decide`] says it, and [`NamespaceGuard`] holds all to it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::error::DriverError;
use crate::ownership::{Admission, FORMAT, Marker, Occupant, Owner};
use crate::schema::Schema;

/// Who holds a namespace, seen from a results folder.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    Nobody,
    ThisFolder,
    AnotherFolder,
    Foreign,
}

/// The same as one of the four that the decision knows.
fn holder(occupant: &Occupant, owner: &Owner) -> Holder {
    match occupant {
        Occupant::Absent => Holder::Nobody,
        Occupant::Foreign(_) => Holder::Foreign,
        Occupant::Ours(marker) if marker.owner.as_ref().is_some_and(|found| found.id == owner.id) => Holder::ThisFolder,
        Occupant::Ours(_) => Holder::AnotherFolder,
    }
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

    /// What lies there, or None if sensorbench created nothing.
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
        match holder(&self.driver.occupant()?, self.owner) {
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

    /// The marker, or None if sensorbench created nothing.
    pub fn marker(&self) -> Result<Option<Marker>, DriverError> {
        Ok(match self.driver.occupant()? {
            Occupant::Ours(marker) => Some(marker),
            Occupant::Absent | Occupant::Foreign(_) => None,
        })
    }

    fn decide(&self, occupant: &Occupant, intent: Intent) -> Result<Decision, DriverError> {
        match decide(holder(occupant, self.owner), intent) {
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
}
