//! sensorbench's namespace: whose it is, the mark in its properties, and its tables.

use std::thread;

use sensorbench_driver::DriverError;

use crate::bindings::{TNamespaceDescriptor, TTHBaseServiceSyncClient, TTableName};
use crate::pool::any_gateway;
use crate::table::HbaseSchema;
use crate::target::Target;
use crate::wire::Gateway;

/// The property with the mark, which makes the namespace ours.
const MARK: &str = "sensorbench.mark";

/// Who owns the namespace that the URL names.
enum Occupant {
    Nobody,
    Sensorbench(String),
    Somebody,
}

/// The namespace of a target.
pub struct Namespace<'a> {
    pub target: &'a Target,
    pub gateway: &'a mut Gateway,
}

impl Namespace<'_> {
    /// Makes the namespace anew, with the empty tables of a schema. What sensorbench did not create is never removed.
    pub fn create(&mut self, schema: &HbaseSchema, mark: &str, replace: bool) -> Result<(), DriverError> {
        let Target { shown, namespace, .. } = self.target;
        match self.occupant()? {
            Occupant::Nobody => {
                let descriptor = self.marked(mark);
                self.gateway.call(|calls| calls.create_namespace(descriptor))?;
            }
            Occupant::Somebody => {
                return Err(DriverError::Namespace(format!(
                    "the cluster at {shown}: the namespace {namespace} is there and sensorbench did not create it; name another one \
                     with namespace="
                )));
            }
            Occupant::Sensorbench(_) if !replace => {
                return Err(DriverError::Namespace(format!(
                    "the cluster at {shown}: the namespace {namespace} holds data of an earlier run of sensorbench; give --replace to \
                     load it again, or name another one with namespace="
                )));
            }
            Occupant::Sensorbench(_) => {
                self.drop_tables()?;
                self.note(mark)?;
            }
        }
        self.for_each(schema.tables.iter().collect(), |gateway, (name, table)| {
            let splits = table.split_keys(&format!("create.table.{name}"))?;
            let descriptor = table.descriptor(namespace, name);
            gateway.call(|calls| calls.create_table(descriptor, splits))
        })
    }

    /// An error unless sensorbench created the namespace.
    pub fn require(&mut self) -> Result<(), DriverError> {
        match self.occupant()? {
            Occupant::Sensorbench(_) => Ok(()),
            _ => Err(DriverError::Namespace(format!(
                "the cluster at {}: sensorbench has no namespace {} there; load it first",
                self.target.shown, self.target.namespace
            ))),
        }
    }

    /// The mark, or None when sensorbench did not create the namespace.
    pub fn mark(&mut self) -> Result<Option<String>, DriverError> {
        Ok(match self.occupant()? {
            Occupant::Sensorbench(mark) => Some(mark),
            _ => None,
        })
    }

    pub fn set_mark(&mut self, mark: &str) -> Result<(), DriverError> {
        self.require()?;
        self.note(mark)
    }

    /// Removes the namespace if sensorbench created it.
    pub fn remove(&mut self) -> Result<(), DriverError> {
        if self.mark()?.is_none() {
            return Ok(());
        }
        self.drop_tables()?;
        let namespace = self.target.namespace.clone();
        self.gateway.call(|calls| calls.delete_namespace(namespace))
    }

    /// Names of the tables, without the namespace.
    pub fn tables(&mut self) -> Result<Vec<String>, DriverError> {
        let names = self.table_names()?;
        Ok(names.into_iter().map(|name| String::from_utf8_lossy(&name.qualifier).into_owned()).collect())
    }

    fn table_names(&mut self) -> Result<Vec<TTableName>, DriverError> {
        let namespace = self.target.namespace.clone();
        self.gateway.call(|calls| calls.get_table_names_by_namespace(namespace))
    }

    fn occupant(&mut self) -> Result<Occupant, DriverError> {
        let namespace = &self.target.namespace;
        if !self.gateway.call(|calls| calls.list_namespaces())?.contains(namespace) {
            return Ok(Occupant::Nobody);
        }
        let descriptor = self.gateway.call(|calls| calls.get_namespace_descriptor(namespace.clone()))?;
        let mark = descriptor.configuration.and_then(|mut properties| properties.remove(MARK));
        Ok(mark.map_or(Occupant::Somebody, Occupant::Sensorbench))
    }

    fn note(&mut self, mark: &str) -> Result<(), DriverError> {
        let descriptor = self.marked(mark);
        self.gateway.call(|calls| calls.modify_namespace(descriptor))
    }

    fn marked(&self, mark: &str) -> TNamespaceDescriptor {
        let properties = [(MARK.to_owned(), mark.to_owned())].into();
        TNamespaceDescriptor { name: self.target.namespace.clone(), configuration: Some(properties) }
    }

    fn drop_tables(&mut self) -> Result<(), DriverError> {
        let names = self.table_names()?;
        self.for_each(names, |gateway, name| {
            if !gateway.call(|calls| calls.is_table_disabled(name.clone()))? {
                gateway.call(|calls| calls.disable_table(name.clone()))?;
            }
            gateway.call(|calls| calls.delete_table(name))
        })
    }

    /// Does something to each table, all at the same time: the master is waited for most of it.
    fn for_each<T: Send>(
        &self,
        tables: Vec<T>,
        work: impl Fn(&mut Gateway, T) -> Result<(), DriverError> + Sync,
    ) -> Result<(), DriverError> {
        let (target, work) = (self.target, &work);
        thread::scope(|scope| {
            let begin = |(number, table)| scope.spawn(move || work(&mut any_gateway(target, number)?.1, table));
            let begun: Vec<_> = tables.into_iter().enumerate().map(begin).collect();
            begun.into_iter().try_for_each(|one| one.join().expect("the work does not panic"))
        })
    }
}
