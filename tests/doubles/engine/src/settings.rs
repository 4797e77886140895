//! What a test asks of a machine, by variables.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

/// When enqueued work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// At once.
    Eager,
    /// As late as possible, and what was enqueued last first, as far as streams and events allow.
    Lazy,
    /// By chance, of this seed, as far as streams and events allow.
    Random(u64),
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("random:")) {
            ("eager", _) => Ok(Self::Eager),
            ("lazy", _) => Ok(Self::Lazy),
            (_, Some(seed)) => seed.parse().map(Self::Random).map_err(|_| "expected a number as seed".into()),
            _ => Err("expected eager, lazy or random:SEED".into()),
        }
    }
}

/// Which devices can reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// All.
    All,
    /// None.
    None,
}

/// When copies touch ordinary memory of the host, of which drivers promise only that they *may* be done at the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pageable {
    /// At the call.
    AtOnce,
    /// When they run, as if it were pinned: who doesn't wait reads too early or writes too early.
    Late,
}

/// The variables of the process, or those that a program gave in their place.
#[derive(Debug, Default)]
pub struct Variables(Mutex<Option<String>>);

impl Variables {
    /// Those of the process.
    pub const fn of_process() -> Self {
        Self(Mutex::new(None))
    }

    /// Others in their place: lines such as `POLYHALO_DOUBLE_DEVICES=4`.
    pub fn replace(&self, lines: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        let given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(given) = given.as_ref() else { return std::env::var(name).ok() };
        let value = given.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
        value.map(str::to_owned)
    }
}

/// A call that fails because a test wants it to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// The entry point; `*` is any.
    pub call: String,
    /// Which call of it, from 1.
    pub nth: u64,
    /// Whether all later ones fail too.
    pub onwards: bool,
    /// The vendor's code.
    pub code: i32,
}

impl FromStr for Injection {
    type Err = String;

    /// `cuLaunchKernel:3:719`: the third call; `cuLaunchKernel:3+:719`: the third and all later ones.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text}: expected ENTRY_POINT:NUMBER:CODE");
        let mut parts = text.split(':');
        let mut next = || parts.next().ok_or_else(wrong);
        let (call, nth, code) = (next()?, next()?, next()?);
        let number = nth.strip_suffix('+').unwrap_or(nth);
        let (nth_call, code) = (number.parse().map_err(|_| wrong())?, code.parse().map_err(|_| wrong())?);
        Ok(Self { call: bare(call).to_owned(), nth: nth_call, onwards: nth.ends_with('+'), code })
    }
}

/// The name of an entry point without the number of its version.
fn bare(name: &str) -> &str {
    ["_v2", "_v3"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// What a test asks of a machine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `POLYHALO_DOUBLE_DEVICES`: how many devices there are.
    pub devices: usize,
    /// `POLYHALO_DOUBLE_ORDER`: when work runs.
    pub order: Order,
    /// `POLYHALO_DOUBLE_FAIL`: calls that fail.
    pub fail: Vec<Injection>,
    /// `POLYHALO_DOUBLE_SKIP`: waits and synchronisations that are left out, each by its entry point and number
    /// (`cuStreamWaitEvent:3`), or all of an entry point (`cuStreamWaitEvent:*`).
    pub skip: Vec<(String, Option<u64>)>,
    /// `POLYHALO_DOUBLE_ARCH`: the architecture of the devices.
    pub architecture: Option<String>,
    /// `POLYHALO_DOUBLE_DRIVER`: the version that the driver claims.
    pub driver: Option<(u32, u32)>,
    /// `POLYHALO_DOUBLE_MEMORY`: bytes of each device.
    pub memory_bytes: u64,
    /// `POLYHALO_DOUBLE_PEERS`: which devices can reach each other.
    pub peers: Peers,
    /// `POLYHALO_DOUBLE_PAGEABLE`: when copies touch memory of the host that isn't pinned, `at-once` or `late`.
    pub pageable: Pageable,
    /// `POLYHALO_DOUBLE_COUNT`: the file to whose end the numbers of calls are written when the program ends.
    pub count: Option<PathBuf>,
    /// `POLYHALO_DOUBLE_LOG`: the file to whose end misuse is written.
    pub log: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            devices: 2,
            order: Order::Eager,
            fail: Vec::new(),
            skip: Vec::new(),
            architecture: None,
            driver: None,
            memory_bytes: 4 << 30,
            peers: Peers::All,
            pageable: Pageable::AtOnce,
            count: None,
            log: None,
        }
    }
}

impl Settings {
    /// What the variables say; the error names the variable that can't be understood.
    pub fn from_environment() -> Result<Self, String> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// As [`from_environment`](Self::from_environment), from any variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        fn parsed<T: FromStr<Err: ToString>>(name: &str, value: Option<String>, default: T) -> Result<T, String> {
            value.map_or(Ok(default), |text| {
                text.parse().map_err(|error: T::Err| format!("{name}: `{text}`: {}", error.to_string()))
            })
        }
        let get = |name: &str| variable(&format!("POLYHALO_DOUBLE_{name}")).filter(|value| !value.is_empty());
        let list = |name: &str| -> Vec<String> {
            get(name).iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect()
        };
        let default = Self::default();
        Ok(Self {
            devices: parsed("POLYHALO_DOUBLE_DEVICES", get("DEVICES"), default.devices)?,
            order: parsed("POLYHALO_DOUBLE_ORDER", get("ORDER"), default.order)?,
            fail: list("FAIL")
                .iter()
                .map(|text| text.parse())
                .collect::<Result<_, _>>()
                .map_err(|error| format!("POLYHALO_DOUBLE_FAIL: {error}"))?,
            skip: list("SKIP")
                .iter()
                .map(|text| skipped(text))
                .collect::<Result<_, _>>()
                .map_err(|error| format!("POLYHALO_DOUBLE_SKIP: {error}"))?,
            architecture: get("ARCH"),
            driver: get("DRIVER").map(|text| version(&text)).transpose()?,
            memory_bytes: parsed("POLYHALO_DOUBLE_MEMORY", get("MEMORY"), default.memory_bytes)?,
            peers: match get("PEERS").as_deref() {
                None | Some("all") => Peers::All,
                Some("none") => Peers::None,
                Some(other) => return Err(format!("POLYHALO_DOUBLE_PEERS: {other}: expected all or none")),
            },
            pageable: match get("PAGEABLE").as_deref() {
                None | Some("at-once") => Pageable::AtOnce,
                Some("late") => Pageable::Late,
                Some(other) => {
                    return Err(format!("POLYHALO_DOUBLE_PAGEABLE: {other}: expected at-once or late"));
                }
            },
            count: get("COUNT").map(PathBuf::from),
            log: get("LOG").map(PathBuf::from),
        })
    }

    /// Whether this call is to do nothing.
    pub(crate) fn skips(&self, call: &str, nth: u64) -> bool {
        let hit =
            |(name, number): &(String, Option<u64>)| name == bare(call) && number.is_none_or(|number| number == nth);
        self.skip.iter().any(hit)
    }

    /// The code with which this call fails, if it does.
    pub(crate) fn injected(&self, call: &str, nth: u64, nth_of_all: u64) -> Option<i32> {
        let hit = |injection: &&Injection| {
            let count = match injection.call.as_str() {
                "*" => nth_of_all,
                name if name == bare(call) => nth,
                _ => return false,
            };
            count == injection.nth || (injection.onwards && count > injection.nth)
        };
        self.fail.iter().find(hit).map(|injection| injection.code)
    }
}

/// `cuStreamWaitEvent:3` or `cuStreamWaitEvent:*`.
fn skipped(text: &str) -> Result<(String, Option<u64>), String> {
    let wrong = || format!("{text}: expected ENTRY_POINT:NUMBER or ENTRY_POINT:*");
    let (call, nth) = text.split_once(':').ok_or_else(wrong)?;
    let number = if nth == "*" { None } else { Some(nth.parse().map_err(|_| wrong())?) };
    Ok((bare(call).to_owned(), number))
}

fn version(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('.').unwrap_or((text, "0"));
    match (parts.0.parse(), parts.1.parse()) {
        (Ok(major), Ok(minor)) => Ok((major, minor)),
        _ => Err(format!("POLYHALO_DOUBLE_DRIVER: {text}: expected a version such as 12.4")),
    }
}
