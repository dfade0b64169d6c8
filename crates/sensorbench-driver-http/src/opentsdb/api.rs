//! What is asked of OpenTSDB beside the operations that are measured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sensorbench_driver::DriverError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::connection::{Call, Reply};
use crate::control::Control;

/// The first and the last ms of a point. Earlier ones are taken for seconds somewhere, by their number of digits; later ones have no row key,
/// which has four bytes for the seconds of its hour.
pub const TIMES_MS: (i64, i64) = (10_000_000_000, 4_294_000_000_000);
/// Metrics that a question counts together.
const METRICS_AT_ONCE: usize = 100;
/// How long deletions may take until HBase has them.
const DELETED_WITHIN: Duration = Duration::from_secs(300);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// This many names are listed.
const NAMES: u32 = 10_000_000;

/// Where points are put, with an account of each that is refused; and the same when HBase has them.
pub const WRITE: &str = "/api/put?details";
pub const WRITE_SYNCED: &str = "/api/put?details&sync";
/// How many different refusals of points a message shows.
const SHOWN_ERRORS: usize = 3;

/// A series of an answer.
#[derive(Deserialize)]
pub struct Series {
    pub tags: BTreeMap<String, String>,
    pub dps: BTreeMap<String, f64>,
}

/// An answer of another server.
pub fn other_answer(control: &Control, problem: impl std::fmt::Display) -> DriverError {
    control.target.unreachable(format!("it does not answer as OpenTSDB does: {problem}"))
}

/// Reads something of the server.
pub fn read<T: DeserializeOwned>(control: &Control, what: &str) -> Result<T, DriverError> {
    let reply = control.answer(Call::get(format!("/api/{what}")))?;
    serde_json::from_slice(&reply.body).map_err(|error| other_answer(control, error))
}

/// The server's settings, as text.
pub fn settings(control: &Control) -> Result<BTreeMap<String, String>, DriverError> {
    read(control, "config")
}

/// What the server says of a refusal, without where in its sources it was.
pub fn words(reply: &Reply) -> String {
    let parsed: Option<Json> = serde_json::from_slice(&reply.body).ok();
    let error = parsed.as_ref().map(|answer| &answer["error"]);
    let text = |key: &str| error.and_then(|error| error[key].as_str());
    match (text("message"), text("details")) {
        (Some(message), Some(details)) => format!("{message}: {}", details.lines().next().unwrap_or("")),
        (Some(message), None) => message.to_owned(),
        _ => reply.shown(),
    }
}

/// Whether a refusal says that a metric or a tag has never been written.
pub fn says_unknown_name(reply: &Reply) -> bool {
    words(reply).contains("No such name for '")
}

/// A question for some parts of all time.
pub fn question(queries: Vec<Json>) -> Json {
    json!({
        "start": format!("{}ms", TIMES_MS.0), "end": format!("{}ms", TIMES_MS.1 + 1),
        "msResolution": true, "noAnnotations": true, "queries": queries,
    })
}

/// The answer to a question; nothing if a name in it was never written.
pub fn ask(control: &Control, question: &Json) -> Result<Vec<Series>, DriverError> {
    let reply = control.ask(Call::post_json("/api/query", question.to_string().into_bytes()))?;
    if reply.status.is_success() {
        return serde_json::from_slice(&reply.body).map_err(|error| other_answer(control, error));
    }
    if says_unknown_name(&reply) { Ok(Vec::new()) } else { Err(DriverError::Statement(words(&reply))) }
}

/// The names of metrics that begin so. A name stays when its points were removed.
pub fn names(control: &Control, beginning: &str) -> Result<Vec<String>, DriverError> {
    let request = json!({"type": "metrics", "q": beginning, "max": NAMES.to_string()});
    let reply = control.answer(Call::post_json("/api/suggest", request.to_string().into_bytes()))?;
    serde_json::from_slice(&reply.body).map_err(|error| other_answer(control, error))
}

/// How many points metrics have together. The server reads them all for it.
pub fn count(control: &Control, metrics: &[String]) -> Result<u64, DriverError> {
    let mut counted = 0.0;
    for some in metrics.chunks(METRICS_AT_ONCE) {
        let query = |metric: &String| json!({"metric": metric, "aggregator": "sum", "downsample": "0all-count"});
        let found = ask(control, &question(some.iter().map(query).collect()))?;
        counted += found.iter().flat_map(|series| series.dps.values()).sum::<f64>();
    }
    Ok(counted as u64)
}

/// Deletes the points of a metric. The server answers before HBase has the deletions, so that they are waited for.
pub fn delete(control: &Control, metric: &str) -> Result<(), DriverError> {
    let deadline = Instant::now() + DELETED_WITHIN;
    let ours = [metric.to_owned()];
    begin_to_delete(control, metric)?;
    while count(control, &ours)? > 0 {
        if Instant::now() > deadline {
            let seconds = DELETED_WITHIN.as_secs();
            return Err(DriverError::Statement(format!("the points of {metric} are there {seconds} s after they were deleted")));
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    Ok(())
}

fn begin_to_delete(control: &Control, metric: &str) -> Result<(), DriverError> {
    let (first, last) = TIMES_MS;
    let path = format!("/api/query?start={first}ms&end={}ms&m=sum:0all-count:{metric}", last + 1);
    let reply = control.ask(Call::delete(path))?;
    if reply.status.is_success() || says_unknown_name(&reply) {
        return Ok(());
    }
    Err(DriverError::Statement(format!(
        "{}; points can be removed when OpenTSDB runs with tsd.http.query.allow_delete=true",
        words(&reply)
    )))
}

/// How many points of a request are in, and what is said of the others.
#[derive(Deserialize)]
pub struct PutAnswer {
    pub success: u64,
    pub failed: u64,
    #[serde(default)]
    errors: Vec<PutError>,
}

#[derive(Deserialize)]
struct PutError {
    error: String,
}

/// What a request to put points is answered with; None of another answer.
pub fn put_answer(reply: &Reply) -> Option<PutAnswer> {
    serde_json::from_slice(&reply.body).ok()
}

/// What the server says where it refused points: with a status of success where HBase did.
pub fn put_refusal(reply: &Reply) -> Option<String> {
    match put_answer(reply) {
        Some(answer) if answer.failed > 0 => {
            let mut errors: Vec<_> = answer.errors.into_iter().map(|error| error.error).collect();
            errors.sort_unstable();
            errors.dedup();
            errors.truncate(SHOWN_ERRORS);
            Some(format!("{} points were refused: {}", answer.failed, errors.join("; ")))
        }
        _ if !reply.status.is_success() => Some(words(reply)),
        _ => None,
    }
}

/// A figure that the server reports about itself.
#[derive(Deserialize)]
pub struct Figure {
    pub metric: String,
    /// A number, as text.
    pub value: String,
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl Figure {
    /// The name with its tags, but for the host, which is that of the server.
    pub fn shown(&self) -> String {
        let tags: Vec<_> =
            self.tags.iter().filter(|(name, _)| *name != "host").map(|(name, text)| format!("{name}={text}")).collect();
        if tags.is_empty() { self.metric.clone() } else { format!("{}{{{}}}", self.metric, tags.join(",")) }
    }
}

/// What the server reports about itself.
pub fn figures(control: &Control) -> Result<Vec<Figure>, DriverError> {
    read(control, "stats")
}
