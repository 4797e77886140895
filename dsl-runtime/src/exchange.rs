//! The ways to exchange halos between devices, by name. On one device there is nothing to exchange, and all give the
//! same plan.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A strategy for the exchange of halos. The first four are those of the paper that this project comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// One host thread; launch everywhere, wait for all, copy through the host, wait.
    Synchronous,
    /// One host thread; boundary planes first, copies through the host chained behind them, the interior beside them.
    Streamed,
    /// As `Streamed`, with a host thread for each device.
    Threaded,
    /// As `Threaded`, with direct copies between devices; where one can't reach another, through the host.
    PeerToPeer,
    /// As `PeerToPeer`, but devices wait for their neighbours only, never for all.
    Neighbour,
    /// As `Neighbour`, with halos so wide that they are exchanged every so many steps only; the planes between are computed
    /// by both neighbours.
    Deep(u32),
    /// The cheapest of them.
    #[default]
    Auto,
}

/// How a strategy does it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// Whether each device has a host thread of its own.
    pub threads: bool,
    /// Whether boundary planes come first and travel beside the interior.
    pub overlaps: bool,
    /// Whether cells are copied from device to device where that is possible.
    pub direct: bool,
    /// Whether all devices wait for all at the end of a step.
    pub meets: bool,
    /// Steps between exchanges.
    pub steps: u32,
}

impl Exchange {
    /// Every strategy; `Deep` with the number of steps that its bare name means.
    pub const ALL: [Self; 7] = [
        Self::Synchronous,
        Self::Streamed,
        Self::Threaded,
        Self::PeerToPeer,
        Self::Neighbour,
        Self::Deep(2),
        Self::Auto,
    ];

    /// Those that exchange halos in every step, for [`Auto`](Self::Auto) to choose from; of equally cheap ones the first.
    pub(crate) const ONE_STEP: [Self; 5] =
        [Self::Neighbour, Self::PeerToPeer, Self::Threaded, Self::Streamed, Self::Synchronous];

    /// The most steps between exchanges.
    pub const MOST_STEPS: u32 = 64;

    /// How it is done; `None` for [`Auto`](Self::Auto).
    pub fn recipe(self) -> Option<Recipe> {
        let threaded = Recipe { threads: true, overlaps: true, direct: false, meets: true, steps: 1 };
        match self {
            Self::Synchronous => Some(Recipe { threads: false, overlaps: false, ..threaded }),
            Self::Streamed => Some(Recipe { threads: false, ..threaded }),
            Self::Threaded => Some(threaded),
            Self::PeerToPeer => Some(Recipe { direct: true, ..threaded }),
            Self::Neighbour => Some(Recipe { direct: true, meets: false, ..threaded }),
            Self::Deep(steps) => Some(Recipe { direct: true, meets: false, overlaps: steps == 1, steps, ..threaded }),
            Self::Auto => None,
        }
    }

    /// The name on command lines and in reports, without the number of steps.
    fn name(self) -> &'static str {
        match self {
            Self::Synchronous => "synchronous",
            Self::Streamed => "streamed",
            Self::Threaded => "threaded",
            Self::PeerToPeer => "peer-to-peer",
            Self::Neighbour => "neighbour",
            Self::Deep(_) => "deep",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deep(steps) => write!(f, "deep:{steps}"),
            other => f.write_str(other.name()),
        }
    }
}

impl FromStr for Exchange {
    type Err = Error;

    /// Capitals, hyphens and underscores don't matter: `PeerToPeer` and `peer-to-peer` are the same. `deep:3`, or `Deep(3)`,
    /// exchanges every three steps.
    fn from_str(text: &str) -> Result<Self> {
        let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
        let (name, steps) = text.split_once([':', '(']).map_or((text, None), |(name, steps)| (name, Some(steps)));
        let found = Self::ALL.into_iter().find(|exchange| plain(exchange.name()) == plain(name));
        let unknown = || {
            let known = Self::ALL.iter().map(|exchange| match exchange {
                Self::Deep(_) => "deep:STEPS with 1 to 64 steps",
                other => other.name(),
            });
            let known = known.collect();
            Error::NoSuchExchange { name: text.into(), known }
        };
        match (found.ok_or_else(unknown)?, steps) {
            (found, None) => Ok(found),
            (Self::Deep(_), Some(steps)) => {
                let steps = steps
                    .trim_end_matches(')')
                    .trim()
                    .parse()
                    .ok()
                    .filter(|steps| (1..=Self::MOST_STEPS).contains(steps));
                steps.map(Self::Deep).ok_or_else(unknown)
            }
            (_, Some(_)) => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_however_they_are_spelled() {
        for exchange in Exchange::ALL.into_iter().chain([Exchange::Deep(1), Exchange::Deep(64)]) {
            assert_eq!(exchange.to_string().parse::<Exchange>().unwrap(), exchange);
            assert_eq!(format!("{exchange:?}").parse::<Exchange>().unwrap(), exchange);
        }
    }

    #[test]
    fn steps_between_exchanges_are_a_number_for_one_strategy_only() {
        for wrong in ["deep:0", "deep:65", "deep:", "deep:x", "threaded:2", "deep:-1"] {
            assert!(wrong.parse::<Exchange>().is_err(), "{wrong}");
        }
        assert_eq!("deep".parse::<Exchange>().unwrap(), Exchange::Deep(2));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "fast".parse::<Exchange>().unwrap_err().to_string();
        assert!(
            error.contains("`fast`")
                && error.contains("threaded, peer-to-peer, neighbour, deep:STEPS with 1 to 64 steps, auto"),
            "{error}"
        );
    }
}
