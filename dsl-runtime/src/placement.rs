//! Which CPUs and which memory are near a device: decisions over what the system says of itself under `/sys`.
//!
//! The root folder is a parameter, so that a made tree can stand for any machine. Nothing here acts: a [`Home`] is where
//! threads that work for a device are to stay, never outside the CPUs that the process may use.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use crate::backend::{Affinity, DeviceInfo, DeviceKind};

/// A greater number in a list of CPUs is taken for nonsense.
const MOST_CPUS: usize = 1 << 16;

/// What the system says of itself: files under a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sys {
    root: PathBuf,
}

impl Default for Sys {
    /// That of this machine.
    fn default() -> Self {
        Self::new("/sys")
    }
}

/// A part of the machine's memory and the CPUs near it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub number: usize,
    /// Its CPUs, of which there may be none.
    pub cpus: Vec<usize>,
}

impl Sys {
    /// With another folder in the place of `/sys`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The NUMA nodes by number; those whose CPUs can't be read are left out.
    pub fn nodes(&self) -> Vec<Node> {
        let entries = fs::read_dir(self.root.join("devices/system/node")).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok());
        let node = |number| Some(Node { number, cpus: self.cpus(&node_file(number, "cpulist"), &mut Vec::new())? });
        let mut nodes: Vec<Node> = numbers.filter_map(node).collect();
        nodes.sort_by_key(|node| node.number);
        nodes
    }

    /// How far node `to` is from node `from`, where the system says so; 10 is the distance of a node to itself.
    fn distance(&self, from: usize, to: &Node, nodes: &[Node]) -> u32 {
        let text = self.text(&node_file(from, "distance")).unwrap_or_default();
        let place = nodes.iter().position(|node| node.number == to.number);
        place.and_then(|place| text.split_whitespace().nth(place)?.parse().ok()).unwrap_or(0)
    }

    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.root.join(file)).ok()
    }

    /// A list of CPUs; what is no list is noted.
    fn cpus(&self, file: &str, notes: &mut Vec<String>) -> Option<Vec<usize>> {
        let text = self.text(file)?;
        let cpus = parse_cpus(&text);
        if cpus.is_none() {
            notes.push(format!("{file} holds `{}`, which is no list of CPUs", text.trim()));
        }
        cpus
    }

    /// A list with at least one CPU.
    fn some_cpus(&self, file: &str, notes: &mut Vec<String>) -> Option<Vec<usize>> {
        self.cpus(file, notes).filter(|cpus| !cpus.is_empty())
    }
}

fn node_file(number: usize, file: &str) -> String {
    format!("devices/system/node/node{number}/{file}")
}

/// The CPUs of a list such as `0-3,8`, in order; `None` if it is none.
pub fn parse_cpus(list: &str) -> Option<Vec<usize>> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| text.parse::<usize>().ok()).flatten();
        number.filter(|number| *number < MOST_CPUS)
    };
    let mut cpus = Vec::new();
    let list = list.trim();
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// CPUs in words, runs of them joined: `2-3, 5`.
pub fn list_cpus(cpus: &[usize]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    let run = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    };
    cpus.chunk_by(|a, b| a + 1 == *b).map(run).collect::<Vec<_>>().join(", ")
}

/// A PCI address as the system writes it, `0000:c1:00.0`, from any usual form: with a longer domain, without one, in
/// capitals. `None` if it is no address.
pub fn pci_address(text: &str) -> Option<String> {
    let number = |text: &str, most: u32| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_number.then(|| u32::from_str_radix(text, 16).ok()).flatten();
        number.filter(|number| *number <= most)
    };
    let (rest, function) = text.trim().rsplit_once('.')?;
    let mut parts = rest.rsplit(':');
    let (device, bus, domain) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    if parts.next().is_some() {
        return None;
    }
    let (domain, bus) = (number(domain, u32::MAX)?, number(bus, 0xff)?);
    let (device, function) = (number(device, 0x1f)?, number(function, 7)?);
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
}

/// What is near a device, whoever may use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Near {
    /// NUMA nodes: one for a device at a PCI address, where it is known; those of its CPUs for a processor.
    pub nodes: Vec<usize>,
    /// CPUs; none when the system doesn't tell.
    pub cpus: Vec<usize>,
    /// What the system doesn't tell, or tells wrongly.
    pub notes: Vec<String>,
}

impl Near {
    /// What is near a listed device; `allowed` are the CPUs that this process may use.
    pub fn of(info: &DeviceInfo, sys: &Sys, allowed: &[usize]) -> Self {
        match (&info.pci, info.kind) {
            (Some(address), _) => Self::of_pci(address, sys),
            (None, DeviceKind::Cpu) => Self::of_cpus(allowed, sys),
            (None, DeviceKind::Gpu) => Self { notes: vec!["its PCI address isn't known".into()], ..Self::default() },
        }
    }

    /// What is near the device at a PCI address: the CPUs that it calls local, else those of its node, else all.
    pub fn of_pci(address: &str, sys: &Sys) -> Self {
        let Some(address) = pci_address(address) else {
            return Self { notes: vec![format!("`{address}` is no PCI address")], ..Self::default() };
        };
        let file = |name: &str| format!("bus/pci/devices/{address}/{name}");
        let mut notes = Vec::new();
        // A machine that has one node only may say -1.
        let node = sys.text(&file("numa_node")).and_then(|text| match text.trim().parse::<i64>() {
            Ok(number) => usize::try_from(number).ok(),
            Err(_) => {
                notes.push(format!("{} holds `{}`, which is no node", file("numa_node"), text.trim()));
                None
            }
        });
        let local = sys.some_cpus(&file("local_cpulist"), &mut notes);
        let of_node = || sys.some_cpus(&node_file(node?, "cpulist"), &mut notes);
        let cpus = local.or_else(of_node);
        let cpus = cpus.or_else(|| sys.some_cpus("devices/system/cpu/online", &mut notes)).unwrap_or_default();
        let around = nodes_of(&cpus, &sys.nodes());
        let nodes = match (node, around.as_slice()) {
            (Some(node), _) => vec![node],
            (None, &[only]) => vec![only],
            (None, _) => Vec::new(),
        };
        Self { nodes, cpus, notes }
    }

    /// What is near a processor with these CPUs: they themselves and their nodes.
    pub fn of_cpus(cpus: &[usize], sys: &Sys) -> Self {
        let mut cpus = cpus.to_vec();
        cpus.sort_unstable();
        cpus.dedup();
        Self { nodes: nodes_of(&cpus, &sys.nodes()), cpus, notes: Vec::new() }
    }
}

/// The nodes to which some of the CPUs belong.
fn nodes_of(cpus: &[usize], nodes: &[Node]) -> Vec<usize> {
    nodes.iter().filter(|node| node.cpus.iter().any(|cpu| cpus.contains(cpu))).map(|node| node.number).collect()
}

/// Where the threads that work for a device stay, and the memory that they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// The CPUs to stay on, all of them allowed; when there is none, threads run anywhere.
    pub cpus: Vec<usize>,
    /// The NUMA node for memory of the host that the device uses, if it is known.
    pub node: Option<usize>,
    /// What a user who cares for placement should know, in a sentence.
    pub note: Option<String>,
}

impl Home {
    /// Threads run anywhere and memory lies anywhere.
    pub const ANYWHERE: Self = Self { cpus: Vec::new(), node: None, note: None };

    /// Where threads stay; `allowed` are the CPUs that this process may use, and no others are ever chosen.
    pub fn new(near: &Near, affinity: Affinity, sys: &Sys, allowed: &[usize]) -> Self {
        match affinity {
            Affinity::None => Self::ANYWHERE,
            Affinity::Near => Self::near(near, allowed),
            Affinity::Far => Self::far(near, sys, allowed),
        }
    }

    fn near(near: &Near, allowed: &[usize]) -> Self {
        let cpus = common(&near.cpus, allowed);
        let node = if let &[only] = near.nodes.as_slice() { Some(only) } else { None };
        let mut notes = near.notes.clone();
        if near.cpus.is_empty() {
            notes.push("the system doesn't tell which CPUs are near it, so that its threads run on any".into());
        } else if cpus.is_empty() {
            notes.push(format!(
                "the CPUs near it ({}) aren't among those that this process may use ({}), so that its threads run on any \
                 of these",
                list_cpus(&near.cpus),
                list_cpus(allowed)
            ));
        }
        Self { cpus, node, note: (!notes.is_empty()).then(|| notes.join("; ")) }
    }

    /// On the node that is farthest away, of equally far ones the first.
    fn far(near: &Near, sys: &Sys, allowed: &[usize]) -> Self {
        let nodes = sys.nodes();
        let from = near.nodes.first().copied();
        let distance = |node: &Node| from.map_or(0, |from| sys.distance(from, node, &nodes));
        let is_far = |node: &&Node| !near.nodes.contains(&node.number) && common(&node.cpus, &near.cpus).is_empty();
        let may_use = |node: &&Node| !common(&node.cpus, allowed).is_empty();
        let candidates = nodes.iter().filter(|_| !near.cpus.is_empty()).filter(is_far).filter(may_use);
        match candidates.rev().max_by_key(|node| distance(node)) {
            Some(node) => Self { cpus: common(&node.cpus, allowed), node: Some(node.number), note: None },
            None => {
                let home = Self::near(near, allowed);
                let none = "this process may use no CPU of a NUMA node that is known to be far from it";
                let note = home
                    .note
                    .map_or_else(|| format!("{none}: its threads stay near"), |note| format!("{none}; {note}"));
                Self { note: Some(note), ..home }
            }
        }
    }

    /// The CPUs for a thread that works for several devices: those near any of them, so that none is preferred; none, so
    /// anywhere, if the threads of one of them may run anywhere.
    pub fn shared<'a>(homes: impl IntoIterator<Item = &'a Self>) -> Vec<usize> {
        let mut all = Vec::new();
        for home in homes {
            if home.cpus.is_empty() {
                return Vec::new();
            }
            all.extend(&home.cpus);
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn common(cpus: &[usize], others: &[usize]) -> Vec<usize> {
    cpus.iter().copied().filter(|cpu| others.contains(cpu)).collect()
}

impl fmt::Display for Home {
    /// `CPUs 0-3 on node 0`, or `anywhere`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cpus.len() {
            0 => f.write_str("anywhere"),
            1 => write!(f, "CPU {}", self.cpus[0]),
            _ => write!(f, "CPUs {}", list_cpus(&self.cpus)),
        }?;
        self.node.map_or(Ok(()), |node| write!(f, ", memory of node {node}"))
    }
}

#[cfg(test)]
mod tests;
