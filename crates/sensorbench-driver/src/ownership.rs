//! Whose a namespace is.
//!
//! Targets may be somebody's production. sensorbench works in a namespace of its own, which carries an ownership marker from its creation
//! on. Drivers only say who occupies the namespace, and no driver creates, marks or removes anything without the [`Admission`] that only the
//! guard (`guard.rs`) gives.

use serde::{Deserialize, Serialize};

/// The form of today's markers. Those of earlier versions have no number.
pub(crate) const FORMAT: u32 = 2;

/// What sensorbench writes into a namespace that it creates.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Marker {
    /// The form of the marker.
    #[serde(rename = "sensorbench")]
    pub(crate) format: u32,
    /// The results folder that created the namespace; None in markers of earlier versions, which had none.
    pub owner: Option<Owner>,
    /// When the namespace was created, in seconds since 1970.
    pub created_s: Option<u64>,
    /// What lies there, in the words of whoever loaded it.
    pub fingerprint: String,
}

/// The results folder that a namespace belongs to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Owner {
    /// Its id, which moves with the folder.
    pub id: String,
    /// Where it was when it created the namespace.
    pub folder: String,
}

impl Marker {
    /// The marker that was written as `text`, or None when sensorbench never wrote such a text.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(marker) = serde_json::from_str(text) {
            return Some(marker);
        }
        let earlier = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).ok()?;
        let has = |key: &str| earlier.contains_key(key);
        let is_ours = (has("fingerprint") && has("state")) || ["stress", "ycsb", "cassandra_stress"].into_iter().any(has);
        is_ours.then(|| Self { fingerprint: text.to_owned(), ..Self::default() })
    }

    /// The marker as text, for [`Marker::parse`].
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a marker has string keys")
    }
}

/// Who occupies the namespace of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Occupant {
    /// Nobody: there is no such namespace.
    Absent,
    /// sensorbench, as the marker says.
    Ours(Marker),
    /// Somebody else; what was found, for the message.
    Foreign(String),
}

impl Occupant {
    /// The occupant of a namespace that is there, by the text where a marker would be.
    pub fn by_text(text: Option<&str>, found: impl FnOnce() -> String) -> Self {
        text.and_then(Marker::parse).map_or_else(|| Self::Foreign(found()), Self::Ours)
    }
}

/// Leave to change a namespace. Only the guard gives it.
#[derive(Debug)]
pub struct Admission {
    pub(crate) replaces: bool,
}

impl Admission {
    /// Whether what sensorbench created there is to be removed first.
    pub fn replaces(&self) -> bool {
        self.replaces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read_as_they_were_written() {
        let owner = Owner { id: "7".to_owned(), folder: "results/a".to_owned() };
        let marker = Marker { format: FORMAT, owner: Some(owner), created_s: Some(1), fingerprint: "{\"a\": 1}".to_owned() };
        assert_eq!(Marker::parse(&marker.to_text()), Some(marker));
    }

    #[test]
    fn markers_of_earlier_versions_have_no_owner() {
        for text in [r#"{"fingerprint": "a", "state": "settled"}"#, r#"{"stress": {}}"#, r#"{"ycsb": [], "state": "loaded"}"#] {
            let marker = Marker::parse(text).expect(text);
            assert_eq!((marker.owner, marker.fingerprint.as_str()), (None, text));
        }
    }

    #[test]
    fn what_others_wrote_is_no_marker() {
        for text in ["", "x", "7", "null", "[]", "{}", r#"{"fingerprint": "a"}"#, r#"{"state": "settled"}"#] {
            assert_eq!(Marker::parse(text), None, "{text}");
        }
    }
}
