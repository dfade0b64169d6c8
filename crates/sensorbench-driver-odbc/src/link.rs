//! How a connection is made, and what it means when it fails.

use std::sync::{Arc, OnceLock};

use sensorbench_driver::{DriverError, TargetUrl};

use crate::dbms::Dbms;
use crate::names::Names;
use crate::odbc::{Connection, Diagnostics, Fact, Manager, Text};
use crate::target::Target;

/// The way to a target.
pub struct Link {
    pub target: Target,
    pub names: Names,
    manager: &'static Manager,
    /// Who answered first.
    dbms: OnceLock<Dbms>,
}

impl Link {
    /// Loads the driver manager; nothing is connected yet.
    pub fn of(url: &TargetUrl) -> Result<Self, DriverError> {
        let target = Target::of(url)?;
        let manager = Manager::load(target.manager.as_deref()).map_err(|error| url.error(error))?;
        Ok(Self { names: Names::of(&target.namespace), target, manager, dbms: OnceLock::new() })
    }

    /// Connects.
    pub fn connect(&self) -> Result<Arc<Connection>, DriverError> {
        let Target { attributes, driver, text, login_timeout_s, .. } = &self.target;
        let opened = Connection::open(self.manager, *text, attributes.text(), driver.as_deref(), *login_timeout_s);
        let connection = opened.map_err(|diagnostics| self.refusal(&diagnostics))?;
        let dbms = *self.dbms.get_or_init(|| Dbms::of(&connection.fact(Fact::DatabaseName)));
        if let Some(greeting) = dbms.greeting() {
            let greeted = connection.statement().and_then(|mut statement| statement.execute_direct(greeting));
            greeted.map_err(|diagnostics| self.error(&connection, &diagnostics))?;
        }
        Ok(connection)
    }

    /// Who answers; known once a connection was made.
    pub fn dbms(&self) -> Dbms {
        self.dbms.get().copied().unwrap_or(Dbms::Other)
    }

    /// What went wrong with a statement: refused by the database, or the connection was lost.
    pub fn error(&self, connection: &Connection, diagnostics: &Diagnostics) -> DriverError {
        let message = self.target.without_secrets(&diagnostics.to_string());
        // 08 are failures of connections, HYT01 their time-out; with 57P PostgreSQL says that it ends one.
        if ["08", "HYT01", "57P"].iter().any(|state| diagnostics.has(state)) || connection.is_dead() {
            return self.connection_error(format!("the connection was lost: {message}; is the server still running?"));
        }
        // Optional features: what is bound may be the wide characters that it does not take.
        let is_unable = diagnostics.has("HYC00") && self.target.text == Text::Wide;
        let advice = if is_unable { "; a driver that is not for Unicode needs text=utf8 in the URL" } else { "" };
        DriverError::Statement(format!("{message}{advice}"))
    }

    /// An error about this target.
    pub fn connection_error(&self, message: String) -> DriverError {
        DriverError::Connection(format!("{}: {message}", self.target.shown))
    }

    /// Why a connection was not made.
    fn refusal(&self, diagnostics: &Diagnostics) -> DriverError {
        let advice = if diagnostics.has("IM002") {
            "name a data source of odbc.ini (odbcinst -q -s lists them), or a driver of odbcinst.ini or its library with driver="
        } else if diagnostics.has("IM003") || diagnostics.has("01000") {
            "name the driver's own library with driver=/path/of/the/driver.so; \
             what it needs must be installed, or lie beside the driver manager"
        } else if diagnostics.has("28") {
            "check user and password (in the file that credentials= names, as uid= and pwd=, or in SENSORBENCH_ODBC_USER and \
             SENSORBENCH_ODBC_PASSWORD)"
        } else {
            "check the attributes of the data source, that the server runs, and user and password"
        };
        self.connection_error(format!("{}; {advice}", self.target.without_secrets(&diagnostics.to_string())))
    }
}
