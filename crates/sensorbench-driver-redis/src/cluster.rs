//! Where in a cluster a key is (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>).

use crc16::{State, XMODEM};
use redis::Value;
use sensorbench_driver::DriverError;

use crate::control_connection;
use crate::target::{Address, Target};

/// Number of slots that the keys of a cluster are spread over.
pub const SLOTS: usize = 16_384;

/// The slot of a key: of what stands between its first braces if there is something, else of all of it.
#[inline]
pub fn slot(key: &[u8]) -> u16 {
    State::<XMODEM>::calculate(hash_tag(key).unwrap_or(key)) % SLOTS as u16
}

#[inline]
fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let start = key.iter().position(|byte| *byte == b'{')? + 1;
    let length = key[start..].iter().position(|byte| *byte == b'}').filter(|length| *length > 0)?;
    Some(&key[start..start + length])
}

/// Who has which keys.
#[derive(Debug, Default)]
pub struct Topology {
    pub masters: Vec<Address>,
    pub replicas: usize,
    /// The place of each slot's master, None if a slot has none. Empty for a single server.
    slots: Vec<Option<u16>>,
}

impl Topology {
    /// Asks the first of the servers that answers.
    pub async fn ask(target: &Target, addresses: &[Address]) -> Result<Self, DriverError> {
        let mut problem = DriverError::Connection(format!("{}: there is no server to ask", target.server.shown()));
        for address in addresses {
            match Self::ask_one(target, address).await {
                Ok(topology) => return Ok(topology),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    async fn ask_one(target: &Target, address: &Address) -> Result<Self, DriverError> {
        if !target.is_cluster {
            return Ok(Self { masters: vec![address.clone()], ..Self::default() });
        }
        let mut connection = control_connection::connect(target, address).await?;
        let slots: Vec<Vec<Value>> =
            control_connection::ask(&mut connection, address, redis::cmd("CLUSTER").arg("SLOTS")).await?;
        let topology = Self::of(&slots, address).ok_or_else(|| address.unreachable("CLUSTER SLOTS was not understood"))?;
        if topology.masters.is_empty() {
            return Err(address.unreachable("the cluster has no slots yet"));
        }
        Ok(topology)
    }

    /// Reads the answer to CLUSTER SLOTS: first slot, last slot, master, replicas.
    fn of(ranges: &[Vec<Value>], answering: &Address) -> Option<Self> {
        let mut topology = Self { slots: vec![None; SLOTS], ..Self::default() };
        let mut replicas = Vec::new();
        for range in ranges {
            let [Value::Int(first), Value::Int(last), master, others @ ..] = range.as_slice() else { return None };
            let master = topology.place(address(master, answering)?);
            let slots = usize::try_from(*first).ok()?..=usize::try_from(*last).ok()?;
            topology.slots.get_mut(slots)?.fill(Some(master as u16));
            replicas.extend(others.iter().filter_map(|node| address(node, answering)).map(|address| address.to_string()));
        }
        replicas.sort_unstable();
        replicas.dedup();
        topology.replicas = replicas.len();
        Some(topology)
    }

    /// The place of a master, who is added when it is new.
    pub fn place(&mut self, master: Address) -> usize {
        self.masters.iter().position(|known| *known == master).unwrap_or_else(|| {
            self.masters.push(master);
            self.masters.len() - 1
        })
    }

    /// The place of the master that has a key.
    #[inline]
    pub fn master_of(&self, key: &[u8]) -> Result<usize, DriverError> {
        if self.slots.is_empty() {
            return Ok(0);
        }
        let slot = slot(key);
        self.slots[usize::from(slot)].map(usize::from).ok_or_else(|| {
            DriverError::Connection(format!("no master of the cluster serves slot {slot}; see what CLUSTER INFO says there"))
        })
    }

    /// Notes that a slot has another master now; returns its place.
    pub fn move_slot(&mut self, slot: u16, master: Address) -> usize {
        let place = self.place(master);
        self.slots[usize::from(slot)] = Some(place as u16);
        place
    }

    /// Takes over who has what. Masters keep their places.
    pub fn adopt(&mut self, newer: Topology) {
        let places: Vec<u16> = newer.masters.into_iter().map(|master| self.place(master) as u16).collect();
        self.slots = newer.slots.into_iter().map(|slot| slot.map(|place| places[usize::from(place)])).collect();
        self.replicas = newer.replicas;
    }
}

/// A node of CLUSTER SLOTS: host, port, and more. Without a host it is the one that was asked.
fn address(node: &Value, answering: &Address) -> Option<Address> {
    let Value::Array(node) = node else { return None };
    let [host, Value::Int(port), ..] = node.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        _ => answering.host.clone(),
    };
    Some(Address { host, port: u16::try_from(*port).ok()? })
}

/// A cluster's word that a key is elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Redirection {
    /// The slot has moved for good (MOVED); else this one operation only should ask there (ASK).
    pub moved: Option<u16>,
    pub address: Address,
}

impl Redirection {
    /// Reads it from an error's text, `MOVED 3999 127.0.0.1:6381`, or None when it is another error.
    pub fn of(text: &str, answering: &Address) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        let (slot, address) = rest.split_once(' ')?;
        let slot = slot.parse().ok().filter(|slot| usize::from(*slot) < SLOTS)?;
        let moved = match kind {
            "MOVED" => Some(slot),
            "ASK" => None,
            _ => return None,
        };
        let (host, port) = address.rsplit_once(':')?;
        let host = if host.is_empty() { &answering.host } else { host };
        Some(Self { moved, address: Address { host: host.to_owned(), port: port.parse().ok()? } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, port: i64) -> Value {
        Value::Array(vec![Value::BulkString(host.into()), Value::Int(port), Value::BulkString("id".into())])
    }

    fn answering() -> Address {
        Address { host: "seed".to_owned(), port: 1 }
    }

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
        for whole in [&b"foo{}{bar}"[..], b"foo{bar"] {
            assert_eq!(slot(whole), State::<XMODEM>::calculate(whole) % 16_384);
        }
    }

    #[test]
    fn a_topology_is_read_from_cluster_slots() {
        let ranges = [
            vec![Value::Int(0), Value::Int(99), node("a", 1), node("b", 1)],
            vec![Value::Int(100), Value::Int(16_000), node("", 2)],
            vec![Value::Int(16_001), Value::Int(16_382), node("a", 1), node("b", 1)],
        ];
        let mut topology = Topology::of(&ranges, &answering()).unwrap();
        assert_eq!(topology.masters.iter().map(Address::to_string).collect::<Vec<_>>(), ["a:1", "seed:2"]);
        assert_eq!(topology.replicas, 1);
        let slots = |topology: &Topology| [99, 100, 16_001, 16_383].map(|slot: usize| topology.slots[slot]);
        assert_eq!(slots(&topology), [Some(0), Some(1), Some(0), None]);
        topology
            .adopt(Topology::of(&[vec![Value::Int(0), Value::Int(16_383), node("b", 1), node("a", 1)]], &answering()).unwrap());
        assert_eq!(slots(&topology), [Some(2); 4], "a master that is new comes after those that are known");
        assert_eq!(topology.move_slot(100, answering()), 3);
        assert_eq!(slots(&topology)[1], Some(3));
        assert!(Topology::of(&[vec![Value::Nil]], &answering()).is_none());
    }

    #[test]
    fn redirections_are_told_from_other_errors() {
        let moved = Redirection::of("MOVED 3999 127.0.0.1:6381", &answering()).unwrap();
        assert_eq!((moved.moved, moved.address.to_string().as_str()), (Some(3999), "127.0.0.1:6381"));
        assert_eq!(
            Redirection::of("ASK 1 :7", &answering()).unwrap(),
            Redirection { moved: None, address: Address { host: "seed".to_owned(), port: 7 } }
        );
        assert_eq!(Redirection::of("ERR MOVED 1 a:1", &answering()), None);
        assert_eq!(Redirection::of("MOVED 99999 a:1", &answering()), None);
    }
}
