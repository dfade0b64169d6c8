//! What a URL says of a target: which driver reaches it, how, and what is sensorbench's own there.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use sensorbench_driver::{DriverError, Login, TargetUrl, is_secret, namespace_of};

use crate::attributes::{Attributes, is_name};
use crate::odbc::Text;

/// Names the driver manager's library where the URL does not.
const MANAGER_VARIABLE: &str = "SENSORBENCH_ODBC_MANAGER";

/// Options that are ours. All others are attributes of the connection string.
const OWN_OPTIONS: [&str; 7] = ["connections", "credentials", "login_timeout", "manager", "namespace", "rows", "text"];

/// User and password, as connection strings call them.
const USER: &str = "uid";
const PASSWORD: &str = "pwd";

/// Rows that are fetched or written at a time.
const ROWS: usize = 1000;
const MAX_ROWS: usize = 32_767;

/// Seconds that a server may take to let us in.
const LOGIN_TIMEOUT_S: u32 = 10;

/// A target. Not shown anywhere but by `shown`, because it holds the password.
#[derive(Clone)]
pub struct Target {
    /// How it is called in messages.
    pub shown: String,
    /// The driver manager's library, unless the system's own.
    pub manager: Option<PathBuf>,
    /// The driver's library, where the URL names it by its path.
    pub driver: Option<PathBuf>,
    pub attributes: Attributes,
    /// What must not stand in any message.
    secrets: Vec<String>,
    pub namespace: String,
    /// The most connections of a run, unless there are as many as operations in flight.
    pub connections: Option<usize>,
    pub rows: usize,
    pub text: Text,
    pub login_timeout_s: u32,
}

impl Target {
    pub fn of(url: &TargetUrl) -> Result<Self, DriverError> {
        let given = given_attributes(url)?;
        let find = |name: &str| given.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone());
        let source = data_source(url)?;
        let driver = find("driver");
        if source.is_none() && driver.is_none() && find("dsn").is_none() && find("filedsn").is_none() {
            return Err(url.error("expected odbc:DSN, or odbc:?driver=/path/of/a/driver.so&… with the attributes that it needs"));
        }
        let login = Login::of(url, Login { user: find(USER), password: find(PASSWORD) })?;
        let mut secrets: Vec<String> = given.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.clone()).collect();
        secrets.extend(login.password.clone());
        secrets.retain(|secret| !secret.is_empty());
        // As they stand between braces.
        secrets.extend(secrets.clone().iter().map(|secret| secret.replace('}', "}}")));
        let path = |path: &str| PathBuf::from(path);
        let from_environment = || std::env::var(MANAGER_VARIABLE).ok();
        let manager = url.option("manager").map(str::to_owned).or_else(from_environment);
        Ok(Self {
            shown: shown(source, driver.as_deref(), find("server").as_deref()),
            manager: manager.filter(|manager| !manager.is_empty()).map(PathBuf::from),
            driver: driver.as_deref().filter(|driver| driver.contains('/')).map(path),
            attributes: attributes(source, &given, &login),
            secrets,
            namespace: namespace_of(url)?,
            connections: url.parsed_option("connections", "a number above zero")?.map(std::num::NonZeroUsize::get),
            rows: rows(url)?,
            text: text(url)?,
            login_timeout_s: url.parsed_option("login_timeout", "a number of seconds")?.unwrap_or(LOGIN_TIMEOUT_S),
        })
    }

    /// The text without what is secret.
    pub fn without_secrets(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

/// Options that are not ours, their values with percent signs decoded.
fn given_attributes(url: &TargetUrl) -> Result<Vec<(String, String)>, DriverError> {
    let foreign = url.options().iter().filter(|(key, _)| !OWN_OPTIONS.contains(&key.as_str()));
    foreign
        .map(|(key, value)| {
            if !is_name(key) {
                return Err(url.error(format!("option {key:?} cannot be an attribute of a connection string")));
            }
            let decoded = percent_decode_str(value).decode_utf8();
            let value =
                decoded.map_err(|_| url.error(format!("option {key} is not UTF-8 after its percent signs are decoded")))?;
            Ok((key.clone(), value.into_owned()))
        })
        .collect()
}

/// The name of a data source, where the URL names one.
fn data_source(url: &TargetUrl) -> Result<Option<&str>, DriverError> {
    let name = url.rest.as_str();
    if name.chars().any(|c| "[]{}(),;?*=!@\\/:".contains(c)) {
        let advice = "a name has none of []{}(),;?*=!@\\/: in it; give user and password by credentials=FILE";
        return Err(url.error(format!("expected odbc:DSN or odbc:?driver=…; {advice}")));
    }
    Ok(Some(name).filter(|name| !name.is_empty()))
}

fn attributes(source: Option<&str>, given: &[(String, String)], login: &Login) -> Attributes {
    let mut attributes = Attributes::default();
    if let Some(source) = source {
        attributes.add("DSN", source);
    }
    for (name, value) in given.iter().filter(|(name, _)| !is_login(name)) {
        attributes.add(name, value);
    }
    for (name, value) in [("UID", &login.user), ("PWD", &login.password)] {
        if let Some(value) = value {
            attributes.add(name, value);
        }
    }
    attributes
}

fn is_login(name: &str) -> bool {
    [USER, PASSWORD].iter().any(|word| name.eq_ignore_ascii_case(word))
}

fn shown(source: Option<&str>, driver: Option<&str>, server: Option<&str>) -> String {
    let driver = driver.map(|driver| Path::new(driver).file_name().map_or(driver.into(), |name| name.to_string_lossy()));
    let name = source.map(Into::into).or(driver).unwrap_or("the data source".into());
    let server = server.map(|server| format!(" at {server}")).unwrap_or_default();
    format!("ODBC, {name}{server}")
}

fn rows(url: &TargetUrl) -> Result<usize, DriverError> {
    let expected = format!("a number from 1 to {MAX_ROWS}");
    let rows = url.parsed_option("rows", &expected)?.unwrap_or(ROWS);
    if (1..=MAX_ROWS).contains(&rows) { Ok(rows) } else { Err(url.error(format!("option rows={rows}: expected {expected}"))) }
}

fn text(url: &TargetUrl) -> Result<Text, DriverError> {
    match url.option("text") {
        None | Some("utf16") => Ok(Text::Wide),
        Some("utf8") => Ok(Text::Narrow),
        Some(other) => Err(url.error(format!("option text={other}: expected utf16 or utf8"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<Target, DriverError> {
        Target::of(&TargetUrl::parse(text).unwrap())
    }

    #[test]
    fn a_data_source_is_named_before_the_options() {
        let target = target("odbc:plant?uid=me&pwd=se%3Bcret&namespace=mine&rows=5&text=utf8&connections=2").unwrap();
        assert_eq!(target.attributes.text(), "DSN=plant;UID=me;PWD={se;cret};");
        assert_eq!((target.namespace.as_str(), target.rows, target.text), ("mine", 5, Text::Narrow));
        assert_eq!((target.connections, target.login_timeout_s), (Some(2), 10));
        assert_eq!(target.shown, "ODBC, plant");
        assert_eq!(target.without_secrets("UID=me;PWD={se;cret}"), "UID=me;PWD={…}");
    }

    #[test]
    fn unknown_options_are_attributes_of_the_driver() {
        let target = target("odbc:?driver=/x/lib y.so&server=db&SSLmode=require&ConnSettings=SET%20a%3D1;b").unwrap();
        assert_eq!(target.attributes.text(), "ConnSettings={SET a=1;b};SSLmode=require;driver=/x/lib y.so;server=db;");
        assert_eq!(target.driver.as_deref(), Some(Path::new("/x/lib y.so")));
        assert_eq!(target.shown, "ODBC, lib y.so at db");
        assert_eq!(super::tests::target("odbc:?driver=PostgreSQL").unwrap().driver, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_showing_the_password() {
        for (text, expected) in [
            ("odbc:", "expected odbc:DSN"),
            ("odbc:?server=db&pwd=secret", "expected odbc:DSN"),
            ("odbc://me:secret@host", "credentials=FILE"),
            ("odbc:me:secret@dsn", "credentials=FILE"),
            ("odbc:x?{=secret", "cannot be an attribute"),
            ("odbc:x?rows=0&pwd=secret", "a number from 1 to"),
            ("odbc:x?text=latin1&pwd=secret", "expected utf16 or utf8"),
            ("odbc:x?namespace=drop;&pwd=secret", "small letters"),
            ("odbc:x?connections=0", "a number above zero"),
            ("odbc:x?credentials=/nowhere&pwd=secret", "credentials /nowhere"),
        ] {
            let message = target(text).err().expect(text).to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("secret") || text.contains("{="), "{message}");
        }
    }
}
