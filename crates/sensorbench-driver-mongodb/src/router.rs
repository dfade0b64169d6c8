//! What the driver does behind a router of a sharded cluster, as far as that can be seen without one: a listener that says that it is a router,
//! answers `ok` to every command, and keeps it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bson::{Document, doc};
use sensorbench_driver::{Parameter, Schema, TargetUrl, Type};
use serde_json::json;

use crate::control::Control;
use crate::observe;
use crate::schema::MongodbSchema;
use crate::target::Target;

type Kept = Arc<Mutex<Vec<Document>>>;

/// OP_MSG, the only kind of message that the library sends.
const MESSAGE: i32 = 2013;
/// Length, number, number of what is answered, and kind of a message; then flags and the kind of the section.
const HEADER_BYTES: usize = 16;
const BEFORE_DOCUMENT_BYTES: usize = 5;

/// Where it listens, and what it is sent, but for what the library asks by itself. `says` is in its `hello`.
fn server(says: &Document) -> (String, Kept) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("mongodb://{}?namespace=mine", listener.local_addr().unwrap());
    let (kept, says) = (Kept::default(), says.clone());
    let commands = kept.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (kept, says) = (kept.clone(), says.clone());
            std::thread::spawn(move || while answered(stream.as_ref().unwrap(), &kept, &says).is_some() {});
        }
    });
    (url, commands)
}

/// Answers one command; None when the client is gone.
fn answered(mut stream: &TcpStream, kept: &Kept, says: &Document) -> Option<()> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).ok()?;
    let length = i32::from_le_bytes(header[..4].try_into().unwrap()) as usize;
    let mut body = vec![0; length - HEADER_BYTES];
    stream.read_exact(&mut body).ok()?;
    let command = Document::from_reader(&body[BEFORE_DOCUMENT_BYTES..]).unwrap();
    let mut answer = doc! {"ok": 1};
    match command.keys().next().map(String::as_str) {
        Some("hello" | "isMaster" | "ismaster") => {
            answer.extend(doc! {"helloOk": true, "isWritablePrimary": true, "minWireVersion": 0, "maxWireVersion": 25});
            answer.extend(doc! {"maxBsonObjectSize": 16 << 20, "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000});
            answer.extend(says.clone());
        }
        Some("find") => {
            let entries = vec![doc! {"_id": "mine.t", "key": {"_id": "hashed"}}, doc! {"_id": "others.t", "key": {"a": 1}}];
            answer.insert("cursor", doc! {"id": 0_i64, "ns": "config.collections", "firstBatch": entries});
        }
        _ => kept.lock().unwrap().push(command),
    }
    let mut message = vec![0; HEADER_BYTES + BEFORE_DOCUMENT_BYTES];
    answer.to_writer(&mut message).unwrap();
    let length = message.len() as i32;
    message[..4].copy_from_slice(&length.to_le_bytes());
    message[8..12].copy_from_slice(&header[4..8]);
    message[12..16].copy_from_slice(&MESSAGE.to_le_bytes());
    stream.write_all(&message).ok()
}

/// The names of the commands that make a collection which is sharded behind a router, each with what it is about; and how the target says
/// that its collections are sharded.
fn made(says: &Document) -> (Vec<(String, String)>, String) {
    let (url, kept) = server(says);
    let target = Arc::new(Target::of(&TargetUrl::parse(&url).unwrap()).unwrap());
    let commands = json!([{"create": "t"}, {"shardCollection": "t", "key": {"_id": "hashed"}, "where_sharded": true}]);
    let columns = vec![Parameter { name: "id".to_owned(), value_type: Type::Integer }];
    let whole = Schema { create: json!({"commands": commands}), tables: [("t".to_owned(), columns)].into(), ..Schema::default() };
    let schema = MongodbSchema::of(&whole).unwrap();
    let control = Control::new(target.clone());
    control.with(async |database| schema.create(database, &target).await).unwrap();
    let commands = kept.lock().unwrap().clone();
    let words = |command: &Document| {
        let (name, about) = command.iter().next().unwrap();
        (name.clone(), about.as_str().unwrap_or_default().to_owned())
    };
    let made = commands.iter().map(words).collect();
    let described = control.with(async |database| Ok(observe::describe(database, &target).await.unwrap())).unwrap();
    (made, described.settings["sharding"].clone())
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, about)| ((*name).to_owned(), (*about).to_owned())).collect()
}

#[test]
fn behind_a_router_collections_are_sharded() {
    let (made, sharding) = made(&doc! {"msg": "isdbgrid"});
    assert_eq!(made, pairs(&[("create", "t"), ("enableSharding", "mine"), ("shardCollection", "mine.t")]));
    assert_eq!(sharding, r#"t by { "_id": "hashed" }"#);
}

#[test]
fn a_server_alone_shards_nothing() {
    let (made, sharding) = made(&doc! {});
    assert_eq!(made, pairs(&[("create", "t")]));
    assert_eq!(sharding, "none: the server is not a router of a sharded cluster (mongos)");
}
