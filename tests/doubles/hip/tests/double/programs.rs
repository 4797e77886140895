//! Programs that do nothing wrong.

use super::library::{Hip, PeerCopy};

/// The orders in which enqueued work may run.
const ORDERS: [&str; 7] = ["eager", "lazy", "random:1", "random:2", "random:3", "random:4", "random:5"];

const HEAT: &str = include_str!("../../../../golden/heat/hip.hip");

/// A grid of n x n x n cells.
const N: usize = 12;
const CELLS: usize = N * N * N;

/// Values without a pattern.
fn values(seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    (0..CELLS).map(|_| next()).collect()
}

/// What the kernel computes inside the rim.
fn heat(u: &[f64], f: &[f64], kappa: &[f64], beta: f64) -> Vec<f64> {
    let mut out = u.to_vec();
    for k in 1..N - 1 {
        for j in 1..N - 1 {
            for i in 1..N - 1 {
                let c = i + N * (j + N * k);
                let flux = |other: usize| (kappa[other] + kappa[c]) * (u[other] - u[c]);
                let sum = flux(c + 1) + flux(c - 1) + flux(c + N) + flux(c - N) + flux(c + N * N) + flux(c - N * N);
                out[c] = u[c] + f[c] + beta * sum;
            }
        }
    }
    out
}

/// The arguments of the kernel inside the rim.
fn arguments([out, u, f, kappa]: [u64; 4], beta: f64) -> Vec<u64> {
    let inside = N as u64 - 2;
    let everything = u64::MAX;
    let (row, plane) = (N as u64, (N * N) as u64);
    vec![out, u, f, kappa, beta.to_bits(), row, plane, 1, 1, 1, inside, inside, inside, everything]
}

const BETA: f64 = 0.1;
const GRID: [u32; 3] = [2, 3, 10];
const BLOCK: [u32; 3] = [8, 4, 1];

/// Two steps, the first on device 0 and the second on device 1, which gets the first one's result; without the wait in between
/// if so told. The result of the second step.
fn relay(hip: &Hip, waits: bool) -> Vec<f64> {
    let fields = [values(1), values(2), values(3)];
    let mut kernels = [0; 2];
    let mut memory = [[0; 4]; 2];
    let mut streams = [0; 2];
    for device in 0..2 {
        assert_eq!(hip.hipSetDevice(device as i32), 0);
        kernels[device] = hip.kernel(HEAT, "heat");
        let [u, f, kappa] = [0, 1, 2].map(|field: usize| hip.upload(&fields[field]));
        memory[device] = [hip.upload(&fields[0]), u, f, kappa];
        streams[device] = hip.stream();
    }
    let [first, second] = memory;
    hip.hipSetDevice(0);
    let done = hip.event();
    assert_eq!(hip.launch(kernels[0], GRID, BLOCK, streams[0], &arguments(first, BETA)), 0);
    assert_eq!(hip.hipMemcpyPeerAsync(second[1], 1, first[0], 0, CELLS * 8, streams[0]), 0);
    assert_eq!(hip.hipEventRecord(done, streams[0]), 0);
    hip.hipSetDevice(1);
    if waits {
        assert_eq!(hip.hipStreamWaitEvent(streams[1], done, 0), 0);
    }
    assert_eq!(hip.launch(kernels[1], GRID, BLOCK, streams[1], &arguments(second, BETA)), 0);
    assert_eq!(hip.hipStreamSynchronize(streams[1]), 0);
    let result = hip.download(second[0], CELLS);
    hip.hipSetDevice(0);
    assert_eq!(hip.hipDeviceSynchronize(), 0);
    result
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn two_devices_of_the_double_hand_on_results_in_every_order() {
    let [u, f, kappa] = [values(1), values(2), values(3)];
    let once = heat(&u, &f, &kappa, BETA);
    let mut expected = heat(&once, &f, &kappa, BETA);
    // The rim of the second result is what was uploaded.
    let rim = |index: usize| [index % N, index / N % N, index / N / N].iter().any(|at| [0, N - 1].contains(at));
    (0..CELLS).filter(|index| rim(*index)).for_each(|index| expected[index] = u[index]);
    for order in ORDERS {
        let hip = Hip::new(&[&format!("ORDER={order}")]);
        assert!(bits(&relay(&hip, true)) == bits(&expected), "{order}");
        assert_eq!(hip.misuses(), "", "{order}");
    }
}

#[test]
fn a_missing_wait_shows_on_the_double_in_lazy_order() {
    let wrong = relay(&Hip::new(&["ORDER=lazy"]), false);
    let right = relay(&Hip::new(&["ORDER=lazy"]), true);
    assert!(bits(&wrong) != bits(&right));
}

#[test]
fn a_recorded_step_of_the_double_is_repeated() {
    for order in ORDERS {
        let hip = Hip::new(&[&format!("ORDER={order}")]);
        let [u, f, kappa] = [values(1), values(2), values(3)];
        let kernel = hip.kernel(HEAT, "heat");
        let memory = [hip.upload(&u), hip.upload(&u), hip.upload(&f), hip.upload(&kappa)];
        let (stream, side, forked, joined) = (hip.stream(), hip.stream(), hip.event(), hip.event());
        let (mut graph, mut ready) = (0, 0);
        assert_eq!(hip.hipStreamBeginCapture(stream, 1), 0);
        assert_eq!(hip.launch(kernel, GRID, BLOCK, stream, &arguments(memory, BETA)), 0);
        assert_eq!(hip.hipEventRecord(forked, stream), 0);
        assert_eq!(hip.hipStreamWaitEvent(side, forked, 0), 0);
        assert_eq!(hip.hipMemcpyAsync(memory[1], memory[0], CELLS * 8, 3, side), 0);
        assert_eq!(hip.hipEventRecord(joined, side), 0);
        assert_eq!(hip.hipStreamWaitEvent(stream, joined, 0), 0);
        assert_eq!(hip.hipStreamEndCapture(stream, &mut graph), 0);
        assert_eq!(hip.hipGraphInstantiateWithFlags(&mut ready, graph, 0), 0);
        assert_eq!(hip.hipGraphDestroy(graph), 0);
        let mut expected = u;
        for _ in 0..3 {
            assert_eq!(hip.hipGraphLaunch(ready, stream), 0);
            expected = heat(&expected, &f, &kappa, BETA);
        }
        assert_eq!(hip.hipStreamSynchronize(stream), 0);
        assert!(bits(&hip.download(memory[0], CELLS)) == bits(&expected), "{order}");
        assert_eq!(hip.hipGraphExecDestroy(ready), 0);
        assert_eq!(hip.misuses(), "", "{order}");
    }
}

#[test]
fn boxes_travel_between_devices_of_the_double_with_and_without_access() {
    for peers in ["all", "none"] {
        let hip = Hip::new(&["ORDER=lazy", &format!("PEERS={peers}")]);
        let source = hip.upload(&values(1));
        assert_eq!(hip.hipSetDevice(1), 0);
        let (target, stream) = (hip.upload(&values(2)), hip.stream());
        // Cells 2..5, rows 1..4, planes 3..6 to those one further along each axis.
        let end = |address: u64| [address as usize, N * 8, N * 8, N];
        let copy = PeerCopy {
            from_place: [2 * 8, 1, 3],
            from: end(source),
            from_device: 0,
            to_place: [3 * 8, 2, 4],
            to: end(target),
            to_device: 1,
            extent: [3 * 8, 3, 3],
            ..PeerCopy::default()
        };
        assert_eq!(hip.hipMemcpy3DPeerAsync(&copy, stream), 0);
        assert_eq!(hip.hipStreamSynchronize(stream), 0);
        let (from, mut expected) = (values(1), values(2));
        for (k, j, i) in (3..6).flat_map(|k| (1..4).flat_map(move |j| (2..5).map(move |i| (k, j, i)))) {
            expected[i + 1 + N * (j + 1 + N * (k + 1))] = from[i + N * (j + N * k)];
        }
        assert!(bits(&hip.download(target, CELLS)) == bits(&expected), "{peers}");
        assert_eq!(hip.misuses(), "", "{peers}");
    }
}

#[test]
fn pinned_memory_of_the_double_is_copied_when_the_copy_runs_and_other_memory_at_the_call() {
    let hip = Hip::new(&["ORDER=lazy"]);
    let (stream, mut pinned) = (hip.stream(), 0);
    assert_eq!(hip.hipHostMalloc(&mut pinned, 8, 1), 0);
    let mut own = Box::new(1.0_f64);
    for (host, expected) in [(pinned, 2.0), (std::ptr::from_mut(&mut *own) as u64, 1.0)] {
        let (device, place) = (hip.alloc(8), host as *mut f64);
        // SAFETY: both are memory for a number, and the device only reads them.
        unsafe { place.write_volatile(1.0) };
        assert_eq!(hip.hipMemcpyAsync(device, host, 8, 1, stream), 0);
        // SAFETY: as above; a caller who does so with pinned memory is mistaken, and sees it.
        unsafe { place.write_volatile(2.0) };
        assert_eq!(hip.hipStreamSynchronize(stream), 0);
        assert_eq!(hip.download(device, 1), [expected]);
    }
    assert_eq!(hip.hipHostFree(pinned), 0);
    assert_eq!(hip.misuses(), "");
}

#[test]
fn events_of_the_double_have_times_and_are_asked_for() {
    let hip = Hip::new(&["ORDER=lazy"]);
    let (stream, from, to) = (hip.stream(), hip.event(), hip.event());
    let memory = hip.alloc(1 << 20);
    assert_eq!(hip.hipEventRecord(from, stream), 0);
    assert_eq!(hip.hipMemsetAsync(memory, 0, 1 << 20, stream), 0);
    assert_eq!(hip.hipEventRecord(to, stream), 0);
    assert_eq!(hip.hipEventQuery(to), 600);
    assert_eq!(hip.hipGetLastError(), 0, "what is not yet done is no error");
    assert_eq!(hip.hipEventSynchronize(to), 0);
    let mut milliseconds = -1.0;
    assert_eq!(hip.hipEventElapsedTime(&mut milliseconds, from, to), 0);
    assert!(milliseconds > 0.0);
    assert_eq!(hip.misuses(), "");
}
