//! The devices that tests run on, one or several, and how they work together. To test another kind or another strategy, name
//! it in one of the lists here.

use std::fmt;

use polyhalo::backend::{Helpers, Order};
use polyhalo::{Builder, Division, Exchange, Simulation};
use polyhalo_codegen::offline::require;
use polyhalo_codegen::random::Random;

/// Every strategy, `Deep` with several numbers of steps.
pub const STRATEGIES: [Exchange; 8] = [
    Exchange::Synchronous,
    Exchange::Streamed,
    Exchange::Threaded,
    Exchange::PeerToPeer,
    Exchange::Neighbour,
    Exchange::Deep(2),
    Exchange::Deep(3),
    Exchange::Auto,
];

/// Numbers of devices that share out a grid evenly and unevenly.
pub const COUNTS: [usize; 5] = [1, 2, 3, 4, 7];

/// Devices and how they are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    spec: String,
    count: usize,
    threads: Option<usize>,
    exchange: Exchange,
    order: Order,
    helpers: Helpers,
    division: Division,
}

impl Device {
    /// Those of a description.
    ///
    /// # Errors
    /// When there are no such devices.
    pub fn find(spec: &str) -> Result<Self, String> {
        let found = polyhalo::devices::find(spec, &[]).map_err(|error| error.to_string())?;
        Ok(Self::of(spec, found.devices.len()))
    }

    /// So many devices that are there.
    fn of(spec: &str, count: usize) -> Self {
        Self {
            spec: spec.into(),
            count,
            threads: None,
            exchange: Exchange::Auto,
            order: Order::Eager,
            helpers: Helpers::Auto,
            division: Division::Even,
        }
    }

    /// With so many threads for each.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// With a strategy.
    pub fn exchange(self, exchange: Exchange) -> Self {
        Self { exchange, ..self }
    }

    /// With an order in which host devices work.
    pub fn order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// With other shares in the planes.
    pub fn division(self, division: Division) -> Self {
        Self { division, ..self }
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether all of them get a plane.
    pub fn fits(&self, cells: [usize; 3]) -> bool {
        self.count <= cells[2]
    }

    /// A simulation in the making.
    pub fn builder(&self, cells: [usize; 3]) -> Builder {
        let builder = Simulation::on(cells).devices(&self.spec).exchange(self.exchange).order(self.order);
        let builder = builder.helpers(self.helpers).division(self.division.clone()).measure_bandwidth(false);
        self.threads.map_or(builder.clone(), |threads| builder.threads(threads))
    }

    /// A simulation on them.
    ///
    /// # Panics
    /// When the devices can't be opened.
    pub fn on(&self, cells: [usize; 3]) -> Simulation {
        self.builder(cells).build().unwrap_or_else(|error| panic!("{self}: {error}"))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spec)?;
        if let Some(threads) = self.threads {
            write!(f, " with {threads} threads")?;
        }
        if self.count > 1 {
            let Self { exchange, order, helpers, division, .. } = self;
            write!(f, " ({exchange}, {order:?}, helpers {helpers:?}, shares {division})")?;
        }
        Ok(())
    }
}

/// Single devices that are always there.
pub fn devices() -> Vec<Device> {
    let host = |threads| Device::of("host", 1).threads(threads);
    vec![Device::of("reference", 1), host(1), host(2), host(5)]
}

/// So many host devices with a thread each.
pub fn hosts(count: usize) -> Device {
    Device::of(&format!("host:{count}"), count).threads(1)
}

/// Several devices that are always there: every strategy, every number of devices and every order in which they may work.
pub fn several() -> Vec<Device> {
    vec![
        Device::of("reference:3", 3).exchange(Exchange::Neighbour),
        hosts(2).exchange(Exchange::Synchronous),
        hosts(3).exchange(Exchange::Streamed),
        hosts(4).exchange(Exchange::Threaded),
        hosts(7).exchange(Exchange::PeerToPeer).order(Order::Lazy),
        hosts(4).exchange(Exchange::Neighbour).division(Division::Shares(vec![1.0, 3.0, 0.5, 2.0])),
        hosts(3).exchange(Exchange::Deep(2)),
        hosts(2).exchange(Exchange::Deep(3)).order(Order::Random(11)),
        Device::of("host:1+reference:1", 2),
    ]
}

/// An OpenCL platform with a part of its name, if it is there; `tool` is what `POLYHALO_REQUIRE` calls it.
pub fn opencl(tool: &str, part: &str) -> Option<Device> {
    require::available(tool, Device::find(&format!("opencl:{part}")))
}

/// The OpenCL platforms that tests use: what `POLYHALO_REQUIRE` calls them, and a part of their names.
pub const PLATFORMS: [(&str, &str); 2] = [("pocl", "portable"), ("intel", "intel")];

/// The terms for the OpenCL devices that are there.
pub fn opencl_terms() -> Vec<String> {
    let there = PLATFORMS.iter().filter(|(tool, part)| opencl(tool, part).is_some());
    there.map(|(_, part)| format!("opencl:{part}")).collect()
}

/// Several devices with OpenCL ones among them, as far as they are there: parts of one, different platforms, and beside the
/// host.
pub fn several_with_opencl() -> Vec<Device> {
    let terms = opencl_terms();
    let strategies = [Exchange::PeerToPeer, Exchange::Neighbour, Exchange::Threaded, Exchange::Streamed];
    let strategies = strategies.into_iter().chain([Exchange::Deep(2), Exchange::Synchronous]).cycle();
    let alike = terms.iter().map(|term| Device::of(&format!("{term}:2"), 2));
    let beside = terms.iter().map(|term| Device::of(&format!("host:1+{term}"), 2));
    let mixed = (terms.len() > 1).then(|| Device::of(&terms.join("+"), terms.len()));
    let sets = alike.chain(mixed).chain(beside);
    sets.zip(strategies).map(|(devices, exchange)| devices.exchange(exchange)).collect()
}

/// Devices drawn by a seed for a grid with so many planes, of these terms and the host: how many of which kind, how they
/// exchange halos, which shares in the planes they have, and in which order host devices work.
pub fn drawn(seed: u64, planes: usize, terms: &[String]) -> Device {
    let random = &mut Random::new(seed ^ 0x9e37_79b9_7f4a_7c15);
    let counts: Vec<usize> = COUNTS.into_iter().filter(|&count| count <= planes).collect();
    // More OpenCL devices than this only take time.
    let counts: Vec<usize> = counts.into_iter().filter(|&count| terms.is_empty() || count <= 3).collect();
    let count = random.pick(&counts);
    let others: Vec<&str> = terms.iter().map(String::as_str).collect();
    let kinds =
        if others.is_empty() { vec!["host", "host", "host", "reference"] } else { [&others[..], &["host"]].concat() };
    let spec = if random.once_in(3) {
        (0..count).map(|_| random.pick(&kinds)).collect::<Vec<_>>().join("+")
    } else {
        let kind = if others.is_empty() { random.pick(&kinds) } else { random.pick(&others) };
        format!("{kind}:{count}")
    };
    let shares = (0..count).map(|_| 1.0 + random.below(4) as f64).collect();
    Device {
        threads: Some(1 + random.below(2)),
        exchange: random.pick(&STRATEGIES),
        order: match random.below(4) {
            0 => Order::Lazy,
            1 => Order::Random(random.bits()),
            _ => Order::Eager,
        },
        helpers: match random.below(4) {
            0 => Helpers::Count(0),
            1 => Helpers::Count(1),
            2 => Helpers::Devices,
            _ => Helpers::Auto,
        },
        division: if random.once_in(2) { Division::Even } else { Division::Shares(shares) },
        ..Device::of(&spec, count)
    }
}
