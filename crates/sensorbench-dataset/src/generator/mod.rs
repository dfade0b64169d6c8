//! Generators of measurements, of logs and of articles. A generator consists of parts, each a pure function of the seed and its number.

mod articles;
mod building;
mod columns;
mod delivery;
mod devices;
mod fields;
mod fitted;
mod hosts;
mod machine_log;
mod normal;
mod parallel;
mod starts;
mod stations;
mod telemetry;
mod trucks;
mod walks;

pub use articles::{Articles, ArticlesPlan};
pub use building::{Building, BuildingSeries, SeriesKind};
pub use columns::{ColumnPlan, Shown};
pub use devices::{Devices, DevicesPlan};
pub use fields::{Change, FieldPlan};
pub use fitted::{Fitted, FittedSeries};
pub use hosts::Hosts;
pub use machine_log::{Band, MachineLog, MachineLogPlan, Piece, log_schema};
pub use parallel::{GeneratedRows, Parts, measurement_schema};
pub use stations::{Outliers, Stations, StationsPlan};
pub use telemetry::{Telemetry, TelemetryPlan};
pub use trucks::Trucks;
pub use walks::{Walks, WalksPlan};
