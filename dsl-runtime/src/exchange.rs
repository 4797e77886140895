//! The ways to exchange halos between devices, by name. On one device there is nothing to exchange, and all give the
//! same plan.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A strategy for the exchange of halos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// One host thread; launch everywhere, wait for all, copy through the host, wait.
    Synchronous,
    /// One host thread; boundary planes first, copies through the host chained behind them, the interior beside them.
    Streamed,
    /// As `Streamed`, with a host thread for each device.
    Threaded,
    /// As `Threaded`, with direct copies between devices.
    PeerToPeer,
    /// The cheapest of them.
    #[default]
    Auto,
}

impl Exchange {
    /// Every strategy.
    pub const ALL: [Self; 5] = [Self::Synchronous, Self::Streamed, Self::Threaded, Self::PeerToPeer, Self::Auto];

    /// The name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Synchronous => "synchronous",
            Self::Streamed => "streamed",
            Self::Threaded => "threaded",
            Self::PeerToPeer => "peer-to-peer",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Exchange {
    type Err = Error;

    /// Capitals, hyphens and underscores don't matter: `PeerToPeer` and `peer-to-peer` are the same.
    fn from_str(name: &str) -> Result<Self> {
        let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
        let found = Self::ALL.into_iter().find(|exchange| plain(exchange.name()) == plain(name));
        let known = || Self::ALL.iter().map(|exchange| exchange.name()).collect();
        found.ok_or_else(|| Error::NoSuchExchange { name: name.into(), known: known() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_however_they_are_spelled() {
        for exchange in Exchange::ALL {
            assert_eq!(exchange.name().parse::<Exchange>().unwrap(), exchange);
            assert_eq!(format!("{exchange:?}").parse::<Exchange>().unwrap(), exchange);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "fast".parse::<Exchange>().unwrap_err().to_string();
        assert!(
            error.contains("`fast`") && error.contains("synchronous, streamed, threaded, peer-to-peer, auto"),
            "{error}"
        );
    }
}
