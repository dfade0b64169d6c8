//! Executing operations.

use std::sync::Arc;

use sensorbench_driver::{BlockingConnector, BlockingSession, Deadline, DriverError, Request, Rows, Value};

use crate::bindings::TTHBaseServiceSyncClient;
use crate::operation::{Prepared, PreparedGet, PreparedPut, PreparedScan};
use crate::pool::Pool;
use crate::requests::{self, Write};
use crate::scanning::each_page;
use crate::target::Target;
use crate::wire::Gateway;

/// Makes sessions that share the connections of a pool.
pub struct Connector {
    pub pool: Arc<Pool>,
    pub operations: Arc<Vec<Prepared>>,
}

impl BlockingConnector for Connector {
    fn connect(&self, deadline: Arc<Deadline>) -> Result<Box<dyn BlockingSession>, DriverError> {
        self.pool.open()?;
        Ok(Box::new(HbaseSession { pool: self.pool.clone(), operations: self.operations.clone(), deadline }))
    }
}

struct HbaseSession {
    pool: Arc<Pool>,
    operations: Arc<Vec<Prepared>>,
    deadline: Arc<Deadline>,
}

impl BlockingSession for HbaseSession {
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        let Request { operation, parameters, rows } = request;
        let (target, deadline) = (&self.pool.target, &self.deadline);
        self.pool.with(deadline, |gateway| match &self.operations[*operation] {
            Prepared::Scan(scan) => execute_scan(target, gateway, scan, parameters, rows, deadline),
            Prepared::Get(get) => execute_get(target, gateway, get, parameters, rows, deadline),
            Prepared::Put(put) => execute_put(target, gateway, put, parameters),
        })
    }
}

fn execute_scan(
    target: &Target,
    gateway: &mut Gateway,
    scan: &PreparedScan,
    parameters: &[Value],
    rows: &mut Rows,
    deadline: &Deadline,
) -> Result<(), DriverError> {
    let Some(get) = requests::scan(scan, parameters, target.caching)? else { return Ok(()) };
    each_page(gateway, &target.table(&scan.reading.table_name), get, target.page, |page| {
        deadline.check()?;
        page.iter().try_for_each(|result| scan.reading.push(parameters, result, rows))
    })
}

fn execute_get(
    target: &Target,
    gateway: &mut Gateway,
    get: &PreparedGet,
    parameters: &[Value],
    rows: &mut Rows,
    deadline: &Deadline,
) -> Result<(), DriverError> {
    let table = target.table(&get.reading.table_name);
    let mut gets = requests::gets(get, parameters)?;
    if gets.len() == 1 {
        let single = gets.swap_remove(0);
        let result = gateway.call(|calls| calls.get(table, single))?;
        return get.reading.push(parameters, &result, rows);
    }
    for page in gets.chunks(target.page as usize) {
        deadline.check()?;
        let results = gateway.call(|calls| calls.get_multiple(table.clone(), page.to_vec()))?;
        results.iter().try_for_each(|result| get.reading.push(parameters, result, rows))?;
    }
    Ok(())
}

fn execute_put(target: &Target, gateway: &mut Gateway, put: &PreparedPut, parameters: &[Value]) -> Result<(), DriverError> {
    let table = target.table(&put.table_name);
    match requests::write(put, parameters, target.durability.word)? {
        Write::Put(put) => gateway.call(|calls| calls.put(table, put)),
        Write::Mutations(mutations) => gateway.call(|calls| calls.mutate_row(table, mutations)),
    }
}
