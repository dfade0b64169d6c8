//! Passes the version of fjall in Cargo.lock to the driver: fjall itself does not report it.

use std::path::Path;

fn main() {
    // Asked when it runs: a target folder that several checkouts share has one such program for all of them.
    let crate_folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo says where the crate is");
    let lock_path = Path::new(&crate_folder).join("../../Cargo.lock");
    let lock = std::fs::read_to_string(&lock_path).expect("Cargo.lock of the workspace is readable");
    let after_name = lock.split("name = \"fjall\"\nversion = \"").nth(1).expect("Cargo.lock holds fjall");
    let version = after_name.split('"').next().expect("a version ends with a quote");
    println!("cargo::rustc-env=FJALL_VERSION={version}");
    println!("cargo::rerun-if-changed={}", lock_path.display());
}
