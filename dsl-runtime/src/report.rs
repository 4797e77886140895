//! What a run has done and how fast it was.

use std::fmt;
use std::time::Duration;

use crate::exchange::Exchange;
use crate::traffic::Traffic;

/// The figures of a finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The kernels, in the order of their first stage.
    pub kernels: Vec<&'static str>,
    /// Cells along X, Y and Z.
    pub grid: [usize; 3],
    /// Steps that were finished.
    pub steps: u64,
    /// The devices, in words.
    pub devices: Vec<String>,
    /// The exchange strategy that was used.
    pub exchange: Exchange,
    /// What was exchanged between devices, as counted.
    pub exchanged: Traffic,
    /// How kernels are laid out on the first GPU, as [`Simulation::shapes`](crate::Simulation::shapes) tells it.
    pub shapes: Vec<(&'static str, String)>,
    /// How many of the steps a device did by recordings, as CUDA graphs.
    pub recorded: u64,
    /// The time in which devices were stepping, until the last one was finished. Filling fields, building kernels and
    /// the caller's own functions between steps don't count.
    pub seconds: f64,
    /// Points that were updated, each launch counted as it ran.
    pub points: u64,
    /// The least memory traffic of these updates: for each point, each field of the kernel read once and each result
    /// written once.
    pub bytes: u64,
    /// The copy bandwidth of the devices together in bytes per second, read and written bytes counted, measured by
    /// this program on these devices.
    pub copy_bandwidth: Option<f64>,
}

impl Report {
    /// Points that were updated per second; 0 for a run without steps.
    pub fn points_per_second(&self) -> f64 {
        per_second(self.points, self.seconds)
    }

    /// The least memory traffic in bytes per second: what a memory would have to give if it were read and written no
    /// more than needed.
    pub fn effective_bandwidth(&self) -> f64 {
        per_second(self.bytes, self.seconds)
    }

    /// The least memory traffic per point.
    pub fn bytes_per_point(&self) -> f64 {
        if self.points == 0 { 0.0 } else { self.bytes as f64 / self.points as f64 }
    }

    /// The effective bandwidth as a share of the measured copy bandwidth.
    pub fn share(&self) -> Option<f64> {
        self.copy_bandwidth.filter(|&copy| copy > 0.0).map(|copy| self.effective_bandwidth() / copy)
    }
}

pub(crate) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.grid;
        let kernels = if self.kernels.is_empty() { "no kernel on".into() } else { self.kernels.join(", ") };
        let devices = joined(&self.devices);
        let plural = if self.steps == 1 { "" } else { "s" };
        write!(f, "{kernels} {x}x{y}x{z}, {} step{plural} on {devices}: {:.3} s", self.steps, self.seconds)?;
        if self.points == 0 {
            return write!(f, ", no point updated");
        }
        let giga = |value: f64| value / 1e9;
        write!(
            f,
            ", {:.3} GPts/s, {:.1} GB/s effective",
            giga(self.points_per_second()),
            giga(self.effective_bandwidth())
        )?;
        if let (Some(share), Some(copy)) = (self.share(), self.copy_bandwidth) {
            write!(f, ", {:.0} % of the measured copy bandwidth ({:.1} GB/s)", share * 100.0, giga(copy))?;
        }
        if !self.exchanged.is_empty() {
            write!(f, "; {}: {}", self.exchange, self.exchanged)?;
        }
        if self.recorded > 0 {
            write!(f, "; {} of the steps recorded", self.recorded)?;
        }
        let mut shapes = self.shapes.iter().filter(|(kernel, _)| self.kernels.contains(kernel));
        shapes.try_for_each(|(kernel, shape)| write!(f, "; {kernel} as {shape}"))
    }
}

/// The devices in words: those that differ in nothing but their number and their CPUs are told once.
pub(crate) fn joined(devices: &[String]) -> String {
    match devices {
        [first, .., last] if devices.iter().all(|device| device.starts_with("host ") && device.contains(" of ")) => {
            format!("{first} to {last}")
        }
        others => others.join(" + "),
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Steps that are finished.
    pub done: u64,
    /// Steps in all.
    pub steps: u64,
    /// The time in which devices were stepping.
    pub elapsed: Duration,
    /// Points that were updated per second so far.
    pub points_per_second: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            kernels: vec!["heat"],
            grid: [256; 3],
            steps: 100,
            devices: vec!["host (2 threads, AVX-512)".into()],
            exchange: Exchange::Auto,
            exchanged: Traffic::default(),
            shapes: Vec::new(),
            recorded: 0,
            seconds: 1.25,
            points: 100 * 254_u64.pow(3),
            bytes: 3200 * 254_u64.pow(3),
            copy_bandwidth: Some(60e9),
        }
    }

    #[test]
    fn a_run_is_told_in_one_line() {
        assert_eq!(
            report().to_string(),
            "heat 256x256x256, 100 steps on host (2 threads, AVX-512): 1.250 s, 1.311 GPts/s, 42.0 GB/s effective, \
             70 % of the measured copy bandwidth (60.0 GB/s)"
        );
        assert_eq!(report().bytes_per_point(), 32.0);
        let shapes = vec![("ghosts", "point:64x4x1 by default".into()), ("heat", "march:64x4:32 as measured".into())];
        let on_gpu = Report { shapes, recorded: 90, ..report() }.to_string();
        assert!(
            on_gpu.ends_with("(60.0 GB/s); 90 of the steps recorded; heat as march:64x4:32 as measured"),
            "{on_gpu}"
        );
    }

    #[test]
    fn a_step_without_kernels_is_told_as_such() {
        let report = Report { kernels: Vec::new(), points: 0, ..report() };
        assert!(report.to_string().starts_with("no kernel on 256x256x256, 100 steps on host"), "{report}");
    }

    #[test]
    fn nothing_done_takes_no_time_and_divides_by_nothing() {
        let report = Report { steps: 0, seconds: 0.0, points: 0, bytes: 0, copy_bandwidth: None, ..report() };
        assert_eq!(
            (report.points_per_second(), report.effective_bandwidth(), report.bytes_per_point()),
            (0.0, 0.0, 0.0)
        );
        assert_eq!(report.share(), None);
        assert_eq!(
            report.to_string(),
            "heat 256x256x256, 0 steps on host (2 threads, AVX-512): 0.000 s, no point updated"
        );
    }
}
