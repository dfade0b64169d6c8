//! Where a database is: `scheme:rest?option=value&…`.

use std::collections::BTreeMap;
use std::fmt;

use crate::DriverError;

/// A target's URL, taken apart. Shown without its user info.
#[derive(Clone, PartialEq)]
pub struct TargetUrl {
    /// The driver's scheme, for example `sqlite`.
    pub scheme: String,
    /// What stands between the scheme and the options: a path for embedded databases, `//user:password@host/…` otherwise.
    pub rest: String,
    options: BTreeMap<String, String>,
}

impl TargetUrl {
    /// Takes a URL apart.
    pub fn parse(text: &str) -> Result<Self, DriverError> {
        // Options may be secrets.
        let rest = text.split_once('?').map_or(text, |(rest, _)| rest).to_owned();
        let hidden = TargetUrl { scheme: String::new(), rest, options: BTreeMap::new() }.rest_without_user_info();
        let error = |message: &str| DriverError::Url(format!("target {hidden}: {message}"));
        let is_word = |scheme: &str| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
        let (scheme, rest) = text
            .split_once(':')
            .filter(|(scheme, _)| is_word(scheme))
            .ok_or_else(|| error("expected DATABASE:ADDRESS, for example sqlite:data.db"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut options = BTreeMap::new();
        for (number, option) in query.split('&').filter(|option| !option.is_empty()).enumerate() {
            let (key, value) = option
                .split_once('=')
                .ok_or_else(|| error(&format!("option number {} is not of the form key=value", number + 1)))?;
            if options.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(error(&format!("option {key} is given twice")));
            }
        }
        Ok(Self { scheme: scheme.to_owned(), rest: rest.to_owned(), options })
    }

    /// An error about this URL.
    pub fn error(&self, message: impl fmt::Display) -> DriverError {
        DriverError::Url(format!("target {self}: {message}"))
    }

    /// Refuses options that are not among `known`.
    pub fn check_options(&self, known: &[&str]) -> Result<(), DriverError> {
        match self.options.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) if known.is_empty() => Err(self.error(format!("unknown option {key}; {}: takes none", self.scheme))),
            Some(key) => Err(self.error(format!("unknown option {key}; expected one of {}", known.join(", ")))),
        }
    }

    /// The text of an option.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    /// The value of an option, or None when it is not given; `expected` says in an error what it should be.
    pub fn parsed_option<T: std::str::FromStr>(&self, key: &str, expected: &str) -> Result<Option<T>, DriverError> {
        let parse = |text: &str| text.parse().map_err(|_| self.error(format!("option {key}={text}: expected {expected}")));
        self.option(key).map(parse).transpose()
    }

    /// Every option.
    pub fn options(&self) -> &BTreeMap<String, String> {
        &self.options
    }

    /// Without what stands before an @ in the place of a host; where the slashes were forgotten, too.
    fn rest_without_user_info(&self) -> String {
        let (before, after) = self.rest.split_once("//").map_or(("", self.rest.as_str()), |(_, after)| ("//", after));
        match after.rsplit_once('@') {
            Some((user_info, host)) if !before.is_empty() || (user_info.contains(':') && !user_info.contains('/')) => {
                format!("{before}{host}")
            }
            _ => self.rest.clone(),
        }
    }
}

/// What the names of options have in them whose values are secrets, whatever the driver.
const SECRETS: [&str; 5] = ["password", "pwd", "passphrase", "secret", "token"];

/// Whether the value of an option of this name is to be kept secret.
pub fn is_secret(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    SECRETS.iter().any(|secret| option.contains(secret))
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}:{}", self.scheme, self.rest_without_user_info())?;
        for (number, (key, value)) in self.options.iter().filter(|(key, _)| !is_secret(key)).enumerate() {
            write!(formatter, "{}{key}={value}", if number == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for TargetUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_shown_without_secrets() {
        let url = TargetUrl::parse("mysql://me:secret@db.example:3306/x?tls=yes&password=p").unwrap();
        assert_eq!((url.scheme.as_str(), url.option("tls"), url.option("password")), ("mysql", Some("yes"), Some("p")));
        assert_eq!(url.to_string(), "mysql://db.example:3306/x?tls=yes");
        assert_eq!(format!("{url:?}"), url.to_string());
        let odbc = TargetUrl::parse("odbc:?PWD=secret&SSLKeyPassword=secret&server=db").unwrap();
        assert_eq!(odbc.to_string(), "odbc:?server=db");
    }

    #[test]
    fn what_is_no_url_is_refused_without_showing_secrets() {
        for text in ["sqlite", "sqlite:a?b", "sqlite:a?b=1&b=2", "//me:secret@host", "odbc:?pwd=my&secret", "?pwd=secret"] {
            let message = TargetUrl::parse(text).unwrap_err().to_string();
            assert!(message.contains("expected") || message.contains("option"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn unknown_options_are_named_with_the_known_ones() {
        let url = TargetUrl::parse("null:?delai=1").unwrap();
        assert_eq!(
            url.check_options(&["delay", "rows"]).unwrap_err().to_string(),
            "target null:?delai=1: unknown option delai; expected one of delay, rows"
        );
    }
}
