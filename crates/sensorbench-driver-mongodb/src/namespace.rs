//! sensorbench's database: whose it is, and the mark in it.

use bson::{Document, doc};
use mongodb::Database;
use mongodb::error::Error;
use sensorbench_driver::DriverError;

use crate::errors;
use crate::target::Target;

/// The collection with the mark, which makes the database ours.
pub const MARK_COLLECTION: &str = "sensorbench";
const MARK_ID: &str = "mark";

/// Who owns the database that the URL names.
#[derive(Debug, PartialEq)]
enum Occupant {
    Nobody,
    Sensorbench,
    Somebody,
}

/// The namespace of a target.
pub struct Namespace<'a> {
    pub target: &'a Target,
    pub database: &'a Database,
}

impl Namespace<'_> {
    /// Makes the namespace anew, empty but for the mark. What sensorbench did not create is never removed.
    pub async fn create(&self, mark: &str, replace: bool) -> Result<(), DriverError> {
        let Target { shown, namespace, .. } = self.target;
        match self.occupant().await? {
            Occupant::Nobody => {}
            Occupant::Somebody => {
                return Err(DriverError::Namespace(format!(
                    "the server at {shown}: the database {namespace} is there and sensorbench did not create it; name another one \
                     with namespace="
                )));
            }
            Occupant::Sensorbench if !replace => {
                return Err(DriverError::Namespace(format!(
                    "the server at {shown}: the database {namespace} holds data of an earlier run of sensorbench; give --replace to \
                     load it again, or name another one with namespace="
                )));
            }
            Occupant::Sensorbench => self.drop_all().await?,
        }
        self.write(mark).await
    }

    /// An error unless sensorbench created the namespace.
    pub async fn require(&self) -> Result<(), DriverError> {
        match self.occupant().await? {
            Occupant::Sensorbench => Ok(()),
            _ => Err(DriverError::Namespace(format!(
                "the server at {}: sensorbench has no database {} there; load it first",
                self.target.shown, self.target.namespace
            ))),
        }
    }

    /// The mark, or None when sensorbench did not create the namespace.
    pub async fn mark(&self) -> Result<Option<String>, DriverError> {
        Ok(self.marked().await?.and_then(|found| found.get_str("mark").ok().map(str::to_owned)))
    }

    pub async fn set_mark(&self, mark: &str) -> Result<(), DriverError> {
        self.require().await?;
        self.write(mark).await
    }

    /// Removes the namespace if sensorbench created it.
    pub async fn remove(&self) -> Result<(), DriverError> {
        match self.occupant().await? {
            Occupant::Sensorbench => self.drop_all().await,
            _ => Ok(()),
        }
    }

    async fn occupant(&self) -> Result<Occupant, DriverError> {
        let all = collections(self.database, self.target, "").await?;
        Ok(match self.marked().await? {
            Some(_) => Occupant::Sensorbench,
            None if all.is_empty() => Occupant::Nobody,
            None => Occupant::Somebody,
        })
    }

    async fn marked(&self) -> Result<Option<Document>, DriverError> {
        let marks = self.database.collection::<Document>(MARK_COLLECTION);
        marks.find_one(doc! {"_id": MARK_ID}).await.map_err(|error| self.refused(error))
    }

    async fn write(&self, mark: &str) -> Result<(), DriverError> {
        let marks = self.database.collection::<Document>(MARK_COLLECTION);
        let written = marks.update_one(doc! {"_id": MARK_ID}, doc! {"$set": {"mark": mark}}).upsert(true);
        written.await.map(|_| ()).map_err(|error| self.refused(error))
    }

    async fn drop_all(&self) -> Result<(), DriverError> {
        self.database.drop().await.map_err(|error| self.refused(error))
    }

    fn refused(&self, error: Error) -> DriverError {
        errors::namespace_error(&self.target.shown, &self.target.namespace, error)
    }
}

/// Collections whose names begin like this, in order, without those of the server and the one with the mark.
pub async fn collections(database: &Database, target: &Target, prefix: &str) -> Result<Vec<String>, DriverError> {
    let listed = database.list_collection_names().await;
    let mut names = listed.map_err(|error| errors::namespace_error(&target.shown, &target.namespace, error))?;
    names.retain(|name| name.starts_with(prefix) && name != MARK_COLLECTION && !name.starts_with("system."));
    names.sort_unstable();
    Ok(names)
}
