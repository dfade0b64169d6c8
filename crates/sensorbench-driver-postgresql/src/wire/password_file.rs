//! The password file of PostgreSQL's own programs (libpq): a line per password, `host:port:database:user:password`.
//!
//! See PostgreSQL's documentation, "The Password File". A password that the URL, a file of credentials or sensorbench's own environment
//! variables give goes first.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sensorbench_driver::DriverError;

/// What one connection is to, as lines of the file name it.
pub struct Login<'a> {
    pub hosts: &'a [(String, u16)],
    pub database: &'a str,
    pub user: &'a str,
}

/// What the password file says. Not shown anywhere, because it holds the password.
#[derive(Default)]
pub struct Found {
    /// The password of the first host that has one.
    pub password: Option<String>,
    /// Why the file was not read, for whoever cannot log in.
    pub ignored: Option<String>,
}

/// The file that libpq reads: what `PGPASSFILE` names, else `.pgpass` in the home folder.
pub fn path(pgpassfile: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let named = |value: Option<OsString>| value.filter(|value| !value.is_empty()).map(PathBuf::from);
    named(pgpassfile).or_else(|| named(home).map(|home| home.join(".pgpass")))
}

/// Looks a login up in a password file. As in libpq, a file that is not there has no passwords, and one that others may read is not read.
pub fn look_up(file: &Path, login: &Login) -> Result<Found, DriverError> {
    let Ok(metadata) = std::fs::metadata(file) else { return Ok(Found::default()) };
    let shown = file.display();
    if !metadata.is_file() {
        return Ok(Found { ignored: Some(format!("the password file {shown} is not a plain file")), password: None });
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        let why = format!("the password file {shown} was not read, because others may read it: chmod 600 {shown}");
        return Ok(Found { ignored: Some(why), password: None });
    }
    let text =
        std::fs::read_to_string(file).map_err(|error| DriverError::Connection(format!("the password file {shown}: {error}")))?;
    Ok(Found { password: password(&text, login), ignored: None })
}

fn password(text: &str, login: &Login) -> Option<String> {
    login.hosts.iter().find_map(|(host, port)| {
        let port = port.to_string();
        let wanted = [host.as_str(), &port, login.database, login.user];
        text.lines().filter(|line| !line.starts_with('#')).find_map(|line| password_in(line, &wanted))
    })
}

/// The password of a line whose other fields are those wanted, or `*`.
fn password_in(line: &str, wanted: &[&str; 4]) -> Option<String> {
    let mut rest = line;
    for wanted in wanted {
        let (field, after) = first_field(rest);
        // An asterisk after a backslash is the name `*`.
        let is_any = rest.starts_with("*:");
        rest = after?;
        if !is_any && field != *wanted {
            return None;
        }
    }
    let (password, _) = first_field(rest);
    (!password.is_empty()).then_some(password)
}

/// The text up to a colon that no backslash precedes, without backslashes, and what follows the colon.
fn first_field(text: &str) -> (String, Option<&str>) {
    let mut field = String::new();
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            ':' => return (field, Some(&text[at + 1..])),
            '\\' => field.extend(signs.next().map(|(_, escaped)| escaped)),
            _ => field.push(sign),
        }
    }
    (field, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# one per line\n\
        db.example:5432:plant:me:first\n\
        db.example:*:*:me:second\n\
        :::\n\
        \\:\\:1:6543:plant:a\\:b:with\\:colon\\\\\n\
        *:*:*:you:any:ignored\n";

    fn found(host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        password(FILE, &Login { hosts: &[(host.to_owned(), port)], database, user })
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        assert_eq!(found("db.example", 5432, "plant", "me").as_deref(), Some("first"));
        assert_eq!(found("db.example", 5433, "plant", "me").as_deref(), Some("second"));
        assert_eq!(found("::1", 6543, "plant", "a:b").as_deref(), Some("with:colon\\"));
        assert_eq!(found("elsewhere", 1, "x", "you").as_deref(), Some("any"));
        assert_eq!(found("elsewhere", 1, "x", "me"), None);
        let hosts = [("elsewhere".to_owned(), 1), ("db.example".to_owned(), 1)];
        assert_eq!(password(FILE, &Login { hosts: &hosts, database: "x", user: "me" }).as_deref(), Some("second"));
        assert_eq!(password("\\*:1:x:me:p", &Login { hosts: &hosts[..1], database: "x", user: "me" }), None);
    }

    #[test]
    fn a_file_that_others_may_read_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), FILE).unwrap();
        let hosts = [("db.example".to_owned(), 5432)];
        let login = Login { hosts: &hosts, database: "plant", user: "me" };
        let allow = |mode| std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o640, 0o604] {
            allow(mode);
            let found = look_up(file.path(), &login).unwrap();
            assert_eq!(found.password, None);
            assert!(found.ignored.unwrap().contains("chmod 600"));
        }
        allow(0o600);
        assert_eq!(look_up(file.path(), &login).unwrap().password.as_deref(), Some("first"));
        let folder = look_up(Path::new("/"), &login).unwrap();
        assert!(folder.ignored.unwrap().contains("not a plain file"));
        let nowhere = look_up(Path::new("/nowhere"), &login).unwrap();
        assert!(nowhere.password.is_none() && nowhere.ignored.is_none());
    }

    #[test]
    fn the_environment_names_the_file() {
        let text = |text: &str| Some(OsString::from(text));
        assert_eq!(path(text("/x"), text("/home/me")), Some("/x".into()));
        assert_eq!(path(text(""), text("/home/me")), Some("/home/me/.pgpass".into()));
        assert_eq!(path(None, None), None);
    }
}
