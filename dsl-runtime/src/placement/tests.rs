//! Decisions on machines that are made of a few files.

use super::*;
use crate::testing::Folder;

/// A machine with two nodes of four CPUs each and a device near each, one of which says -1; node 2 has memory only.
fn two_nodes(name: &str) -> Folder {
    machine(
        name,
        &[
            ("devices/system/cpu/online", "0-7\n"),
            ("devices/system/node/node0/cpulist", "0-3\n"),
            ("devices/system/node/node0/distance", "10 21 17\n"),
            ("devices/system/node/node1/cpulist", "4-7\n"),
            ("devices/system/node/node1/distance", "21 10 28\n"),
            ("devices/system/node/node2/cpulist", "\n"),
            ("devices/system/node/possible", "0-2\n"),
            ("bus/pci/devices/0000:41:00.0/numa_node", "0\n"),
            ("bus/pci/devices/0000:41:00.0/local_cpulist", "0-3\n"),
            ("bus/pci/devices/0000:c1:00.0/numa_node", "1\n"),
            ("bus/pci/devices/0000:c1:00.0/local_cpulist", "4-7\n"),
            // The node is unknown, the CPUs are not.
            ("bus/pci/devices/0000:c2:00.0/numa_node", "-1\n"),
            ("bus/pci/devices/0000:c2:00.0/local_cpulist", "4-5\n"),
            // The other way round.
            ("bus/pci/devices/0000:c3:00.0/numa_node", "1\n"),
            // Near everything.
            ("bus/pci/devices/0000:c4:00.0/numa_node", "-1\n"),
            ("bus/pci/devices/0000:c4:00.0/local_cpulist", "0-7\n"),
            ("bus/pci/devices/0000:c5:00.0/numa_node", "one\n"),
            ("bus/pci/devices/0000:c5:00.0/local_cpulist", "4-\n"),
        ],
    )
}

fn machine(name: &str, files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(&format!("placement-{name}"));
    for (file, text) in files {
        let path = folder.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

const ALL: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

#[test]
fn local_cpus_come_first_then_those_of_the_node_then_all() {
    let folder = two_nodes("near");
    let sys = Sys::new(folder.path(""));
    let check = |address: &str, nodes: &[usize], cpus: &[usize], notes: usize| {
        let near = Near::of_pci(address, &sys);
        assert_eq!((near.nodes.as_slice(), near.cpus.as_slice(), near.notes.len()), (nodes, cpus, notes), "{near:?}");
    };
    check("0000:41:00.0", &[0], &ALL[..4], 0);
    check("00000000:C1:00.0", &[1], &ALL[4..], 0);
    check("c1:00.0", &[1], &ALL[4..], 0);
    check("c2:00.0", &[1], &[4, 5], 0);
    check("c3:00.0", &[1], &ALL[4..], 0);
    check("c4:00.0", &[], &ALL, 0);
    check("c5:00.0", &[], &ALL, 2);
    // No such device.
    check("01:00.0", &[], &ALL, 0);
    check("no address", &[], &[], 1);
}

#[test]
fn a_processor_is_near_its_own_cpus() {
    let folder = two_nodes("processor");
    let sys = Sys::new(folder.path(""));
    let nodes = |cpus: &[usize]| Near::of_cpus(cpus, &sys).nodes;
    assert_eq!([nodes(&[0, 1]), nodes(&[5]), nodes(&ALL), nodes(&[9])], [vec![0], vec![1], vec![0, 1], vec![]]);
    assert_eq!(Near::of_cpus(&[3, 1, 3], &sys).cpus, [1, 3]);
}

#[test]
fn homes_are_near_or_far_and_never_outside_the_mask() {
    let folder = two_nodes("home");
    let sys = Sys::new(folder.path(""));
    let home = |near: &Near, affinity, allowed: &[usize]| {
        let home = Home::new(near, affinity, &sys, allowed);
        assert!(home.cpus.iter().all(|cpu| allowed.contains(cpu)), "{home:?} {allowed:?}");
        home
    };
    let check = |address: &str, affinity, allowed: &[usize], expected: &str, note: &str| {
        let home = home(&Near::of_pci(address, &sys), affinity, allowed);
        assert_eq!(home.to_string(), expected, "{address} {affinity:?} {allowed:?}");
        let found = home.note.unwrap_or_default();
        assert!(found.contains(note) && found.is_empty() == note.is_empty(), "{found:?} for {note:?}");
    };
    use Affinity::{Far, Near as Close};
    check("41:00.0", Close, &ALL, "CPUs 0-3, memory of node 0", "");
    check("41:00.0", Far, &ALL, "CPUs 4-7, memory of node 1", "");
    check("41:00.0", Affinity::None, &ALL, "anywhere", "");
    check("c1:00.0", Close, &[3, 4, 6], "CPUs 4, 6, memory of node 1", "");
    check("c1:00.0", Far, &[3, 4, 6], "CPU 3, memory of node 0", "");
    check("c2:00.0", Close, &ALL, "CPUs 4-5, memory of node 1", "");
    check("c2:00.0", Far, &ALL, "CPUs 0-3, memory of node 0", "");
    // The mask leaves nothing near, or nothing far.
    check(
        "c1:00.0",
        Close,
        &[0, 1],
        "anywhere, memory of node 1",
        "(4-7) aren't among those that this process may use (0-1)",
    );
    check("c1:00.0", Far, &[4, 5], "CPUs 4-5, memory of node 1", "far from it: its threads stay near");
    check("c1:00.0", Close, &[], "anywhere, memory of node 1", "may use ()");
    check("c4:00.0", Far, &ALL, "CPUs 0-7", "its threads stay near");
    check("c5:00.0", Close, &ALL, "CPUs 0-7", "local_cpulist holds `4-`, which is no list of CPUs");
    check("nowhere", Close, &ALL, "anywhere", "the system doesn't tell");
    check("nowhere", Far, &ALL, "anywhere", "`nowhere` is no PCI address");
    let processor = |cpus: &[usize], affinity| home(&Near::of_cpus(cpus, &sys), affinity, &ALL).to_string();
    assert_eq!(processor(&[4, 5], Close), "CPUs 4-5, memory of node 1");
    assert_eq!(processor(&[4, 5], Far), "CPUs 0-3, memory of node 0");
    assert_eq!(processor(&ALL, Far), "CPUs 0-7");
}

#[test]
fn far_is_the_farthest_node_with_cpus() {
    let nodes = [("0", "0\n"), ("1", "1\n"), ("2", "2\n"), ("10", "3\n")];
    let mut files: Vec<_> =
        nodes.iter().map(|(node, cpus)| (format!("devices/system/node/node{node}/cpulist"), *cpus)).collect();
    files.push(("devices/system/node/node1/distance".into(), "12 10 32 32\n"));
    let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), *text)).collect();
    let folder = machine("farthest", &files);
    let sys = Sys::new(folder.path(""));
    let far =
        |cpu: usize, allowed: &[usize]| Home::new(&Near::of_cpus(&[cpu], &sys), Affinity::Far, &sys, allowed).node;
    assert_eq!(far(1, &ALL), Some(2));
    assert_eq!(far(1, &[0, 1, 3]), Some(10));
    assert_eq!(far(1, &[0, 1]), Some(0));
    // Distances that nobody knows are all alike.
    assert_eq!(far(0, &ALL), Some(1));
}

#[test]
fn a_machine_that_says_nothing_pins_nothing() {
    let folder = machine("silent", &[("power/state", "")]);
    let sys = Sys::new(folder.path(""));
    for affinity in [Affinity::Near, Affinity::Far] {
        let home = Home::new(&Near::of_pci("01:00.0", &sys), affinity, &sys, &ALL);
        assert_eq!((home.to_string().as_str(), home.note.is_some()), ("anywhere", true));
    }
    assert_eq!(sys.nodes(), []);
    // A processor knows its own CPUs without being told.
    assert_eq!(Home::new(&Near::of_cpus(&[1, 2], &sys), Affinity::Near, &sys, &ALL).to_string(), "CPUs 1-2");
}

#[test]
fn a_thread_for_several_devices_stays_near_any_of_them() {
    let home = |cpus: &[usize]| Home { cpus: cpus.to_vec(), ..Home::ANYWHERE };
    assert_eq!(Home::shared([&home(&[4, 5]), &home(&[0, 4])]), [0, 4, 5]);
    assert!(Home::shared([&home(&[4]), &Home::ANYWHERE]).is_empty());
    assert!(Home::shared([]).is_empty());
}

#[test]
fn lists_of_cpus_are_read_and_written() {
    let check = |text: &str, expected: Option<&[usize]>| assert_eq!(parse_cpus(text).as_deref(), expected, "{text:?}");
    check("0-3,8\n", Some(&[0, 1, 2, 3, 8]));
    check("5", Some(&[5]));
    check("4-4,2,3-4", Some(&[2, 3, 4]));
    check("\n", Some(&[]));
    for wrong in ["-", "1-", "-1", "3-2", "1,,2", "1,", "a", "0x1", "+1", "1 2", "0-99999999", "1-2-3", "٣"] {
        check(wrong, None);
    }
    assert_eq!(list_cpus(&[5, 2, 3, 3]), "2-3, 5");
    assert_eq!(list_cpus(&[]), "");
}

#[test]
fn addresses_are_read_in_every_form() {
    let check = |text: &str, expected: &str| assert_eq!(pci_address(text).as_deref(), Some(expected), "{text}");
    check("00000000:C1:00.0", "0000:c1:00.0");
    check("c1:00.0", "0000:c1:00.0");
    check("0000:c1:1f.7\n", "0000:c1:1f.7");
    check("10000:01:00.0", "10000:01:00.0");
    check("1:2:3.4", "0001:02:03.4");
    for wrong in
        ["", "c1", "c1:00", "00.0", "c1:00.8", "c1:20.0", "100:00.0", "0:0:c1:00.0", "+1:00.0", "../x:1.0", "c1:00."]
    {
        assert_eq!(pci_address(wrong), None, "{wrong}");
    }
}
