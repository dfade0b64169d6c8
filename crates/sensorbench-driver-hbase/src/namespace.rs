//! sensorbench's namespace: whose it is, the marker in its properties, and its tables.

use std::thread;

use sensorbench_driver::{Admission, DriverError, Marker, Occupant};

use crate::bindings::{TNamespaceDescriptor, TTHBaseServiceSyncClient, TTableName};
use crate::pool::any_gateway;
use crate::table::HbaseSchema;
use crate::target::Target;
use crate::wire::Gateway;

/// The property with the marker, which makes the namespace ours.
const MARK: &str = "sensorbench.mark";

/// The namespace of a target.
pub struct Namespace<'a> {
    pub target: &'a Target,
    pub gateway: &'a mut Gateway,
}

impl Namespace<'_> {
    /// Creates the namespace, with the empty tables of a schema.
    pub fn create(&mut self, schema: &HbaseSchema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        if admission.replaces() {
            // The namespace stays, and with it the marker that makes it ours.
            self.drop_tables()?;
            self.write_marker(marker)?;
        } else {
            let descriptor = self.with_marker(marker);
            self.gateway.call(|calls| calls.create_namespace(descriptor))?;
        }
        self.for_each(schema.tables.iter().collect(), |gateway, (name, table)| {
            let splits = table.split_keys(&format!("create.table.{name}"))?;
            let descriptor = table.descriptor(&self.target.namespace, name);
            gateway.call(|calls| calls.create_table(descriptor, splits))
        })
    }

    pub fn write_marker(&mut self, marker: &Marker) -> Result<(), DriverError> {
        let descriptor = self.with_marker(marker);
        self.gateway.call(|calls| calls.modify_namespace(descriptor))
    }

    pub fn remove(&mut self) -> Result<(), DriverError> {
        self.drop_tables()?;
        let namespace = self.target.namespace.clone();
        self.gateway.call(|calls| calls.delete_namespace(namespace))
    }

    pub fn occupant(&mut self) -> Result<Occupant, DriverError> {
        if !self.gateway.call(|calls| calls.list_namespaces())?.contains(&self.target.namespace) {
            return Ok(Occupant::Absent);
        }
        Ok(match self.marker_of(&self.target.namespace)? {
            Some(marker) => Occupant::Ours(marker),
            None => Occupant::Foreign("it is somebody's namespace".to_owned()),
        })
    }

    /// Names of all namespaces with a marker of ours.
    pub fn all(&mut self) -> Result<Vec<String>, DriverError> {
        let mut ours = Vec::new();
        for name in self.gateway.call(|calls| calls.list_namespaces())? {
            if self.marker_of(&name)?.is_some() {
                ours.push(name);
            }
        }
        ours.sort_unstable();
        Ok(ours)
    }

    /// The marker of a namespace that is there. The name of its property alone makes it ours.
    fn marker_of(&mut self, namespace: &str) -> Result<Option<Marker>, DriverError> {
        let descriptor = self.gateway.call(|calls| calls.get_namespace_descriptor(namespace.to_owned()))?;
        let text = descriptor.configuration.and_then(|mut properties| properties.remove(MARK));
        Ok(text.map(|text| Marker::parse(&text).unwrap_or_default()))
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

    fn with_marker(&self, marker: &Marker) -> TNamespaceDescriptor {
        let properties = [(MARK.to_owned(), marker.to_text())].into();
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
