//! sensorbench's database: whose it is, and the marker in it.

use bson::{Document, doc};
use mongodb::Database;
use mongodb::error::Error;
use sensorbench_driver::{Admission, DriverError, Marker, Occupant};

use crate::errors;
use crate::target::Target;

/// The collection with the marker, which makes the database ours.
pub const MARK_COLLECTION: &str = "sensorbench";
const MARK_ID: &str = "mark";
/// Databases of the server itself.
const SERVER_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// The namespace of a target.
pub struct Namespace<'a> {
    pub target: &'a Target,
    pub database: &'a Database,
}

impl Namespace<'_> {
    /// Creates the namespace, empty but for the marker.
    pub async fn create(&self, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        if admission.replaces() {
            self.remove().await?;
        }
        self.write_marker(marker).await
    }

    pub async fn occupant(&self) -> Result<Occupant, DriverError> {
        if collection_names(self.database, self.target).await?.is_empty() {
            return Ok(Occupant::Absent);
        }
        let text = marker_text(self.database).await.map_err(|error| self.refused(error))?;
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's database".to_owned()))
    }

    pub async fn write_marker(&self, marker: &Marker) -> Result<(), DriverError> {
        let marks = self.database.collection::<Document>(MARK_COLLECTION);
        let written = marks.update_one(doc! {"_id": MARK_ID}, doc! {"$set": {"mark": marker.to_text()}}).upsert(true);
        written.await.map(|_| ()).map_err(|error| self.refused(error))
    }

    pub async fn remove(&self) -> Result<(), DriverError> {
        self.database.drop().await.map_err(|error| self.refused(error))
    }

    /// Names of all databases of the server with a marker of ours, of those that the user may see.
    pub async fn all(&self) -> Result<Vec<String>, DriverError> {
        let client = self.database.client();
        let mut ours = Vec::new();
        for name in client.list_database_names().await.map_err(|error| self.refused(error))? {
            if SERVER_DATABASES.contains(&name.as_str()) {
                continue;
            }
            let text = marker_text(&client.database(&name)).await.map_err(|error| self.refused(error))?;
            if text.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(name);
            }
        }
        ours.sort_unstable();
        Ok(ours)
    }

    fn refused(&self, error: Error) -> DriverError {
        errors::namespace_error(&self.target.shown, &self.target.namespace, error)
    }
}

/// The text where a marker would be.
async fn marker_text(database: &Database) -> Result<Option<String>, Error> {
    let found = database.collection::<Document>(MARK_COLLECTION).find_one(doc! {"_id": MARK_ID}).await?;
    Ok(found.and_then(|found| found.get_str("mark").ok().map(str::to_owned)))
}

/// Collections whose names begin like this, in order, without those of the server and the one with the marker.
pub async fn collections(database: &Database, target: &Target, prefix: &str) -> Result<Vec<String>, DriverError> {
    let mut names = collection_names(database, target).await?;
    names.retain(|name| name.starts_with(prefix) && name != MARK_COLLECTION);
    Ok(names)
}

/// All collections but those of the server, in order.
async fn collection_names(database: &Database, target: &Target) -> Result<Vec<String>, DriverError> {
    let listed = database.list_collection_names().await;
    let mut names = listed.map_err(|error| errors::namespace_error(&target.shown, &target.namespace, error))?;
    names.retain(|name| !name.starts_with("system."));
    names.sort_unstable();
    Ok(names)
}
