//! Scans, page by page.

use sensorbench_driver::DriverError;

use crate::bindings::{TResult, TScan, TTHBaseServiceSyncClient};
use crate::wire::Gateway;

/// Gives every page of a scan to `take`. One call answers a scan of less than a page; only a longer one opens a scanner at the gateway,
/// after the first page. After an error the scanner is the gateway's to close, which it does when nobody asks for it.
pub fn each_page(
    gateway: &mut Gateway,
    table: &[u8],
    scan: TScan,
    page: i32,
    mut take: impl FnMut(&[TResult]) -> Result<(), DriverError>,
) -> Result<(), DriverError> {
    let limit = scan.limit.unwrap_or(i32::MAX);
    let first_page = page.min(limit);
    let first = gateway.call(|calls| calls.get_scanner_results(table.to_vec(), scan.clone(), first_page))?;
    take(&first)?;
    let Some(last) = first.last().and_then(|result| result.row.clone()) else { return Ok(()) };
    if (first.len() as i32) < first_page || first_page == limit {
        return Ok(());
    }
    drop(first);
    let rest = TScan { start_row: Some(next_key(last)), limit: scan.limit.map(|limit| limit - first_page), ..scan };
    let scanner = gateway.call(|calls| calls.open_scanner(table.to_vec(), rest))?;
    loop {
        let rows = gateway.call(|calls| calls.get_scanner_rows(scanner, page))?;
        take(&rows)?;
        if (rows.len() as i32) < page {
            return gateway.call(|calls| calls.close_scanner(scanner));
        }
    }
}

/// The first key after this one.
fn next_key(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}
