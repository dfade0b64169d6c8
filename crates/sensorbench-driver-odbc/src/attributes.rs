//! Connection strings: attributes with values, as ODBC writes them.

/// Characters that would end a value, or that begin or end a quoted one.
const SPECIAL: [char; 3] = [';', '{', '}'];

/// A connection string under construction. Not shown anywhere, because it may hold passwords.
#[derive(Clone, Default)]
pub struct Attributes(String);

impl Attributes {
    /// Adds an attribute. Values are put between braces only where they must be, because not every driver takes braces off.
    pub fn add(&mut self, name: &str, value: &str) {
        let is_plain = !value.contains(SPECIAL) && value.trim() == value;
        self.0.push_str(name);
        self.0.push('=');
        if is_plain {
            self.0.push_str(value);
        } else {
            self.0.push('{');
            self.0.push_str(&value.replace('}', "}}"));
            self.0.push('}');
        }
        self.0.push(';');
    }

    /// The connection string.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Whether this can be the name of an attribute.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_between_braces_where_they_must_be() {
        for (value, expected) in [
            ("plain", "A=plain;"),
            ("/a/path with spaces.db", "A=/a/path with spaces.db;"),
            ("", "A=;"),
            ("p;UID=root", "A={p;UID=root};"),
            ("a}b", "A={a}}b};"),
            ("};DRIVER={x", "A={}};DRIVER={x};"),
            ("{", "A={{};"),
            (" edge ", "A={ edge };"),
            ("a=b@c!d", "A=a=b@c!d;"),
            ("été", "A=été;"),
        ] {
            let mut attributes = Attributes::default();
            attributes.add("A", value);
            assert_eq!(attributes.text(), expected);
        }
    }

    #[test]
    fn names_are_words() {
        assert!(is_name("SSLMode") && is_name("Trusted_Connection") && is_name("Data Source"));
        assert!(!is_name("") && !is_name("a;b") && !is_name("{") && !is_name("1"));
    }
}
