//! Runs of a step: how long, who is told, what is written on the way.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::files;
use crate::interrupt;
use crate::progress::ProgressBar;
use crate::report::{Progress, Report, per_second};
use crate::simulation::Simulation;
use crate::step::Step;
use crate::traffic::Traffic;

/// About how long devices step before the caller hears of it.
const PROGRESS_SECONDS: f64 = 0.1;

/// Steps that are enqueued at most before devices are waited for.
const MOST_STEPS_AHEAD: u64 = 256;

/// What a function that is called during a run may give: nothing, whether to go on, or a result of either.
pub trait Verdict {
    /// Whether the run goes on.
    fn verdict(self) -> Result<ControlFlow<()>>;
}

impl Verdict for () {
    fn verdict(self) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
}

impl Verdict for ControlFlow<()> {
    fn verdict(self) -> Result<ControlFlow<()>> {
        Ok(self)
    }
}

impl<T: Verdict> Verdict for Result<T> {
    fn verdict(self) -> Result<ControlFlow<()>> {
        self?.verdict()
    }
}

type Watcher<'a> = Box<dyn FnMut(Progress) -> Result<ControlFlow<()>> + 'a>;

/// A run of a step in the making; [`finish`](Self::finish) does it.
#[must_use = "nothing runs until `finish`"]
pub struct Run<'a> {
    simulation: &'a Simulation,
    step: &'a Step,
    steps: u64,
    bar: bool,
    /// Called about ten times a second and after the last step.
    watchers: Vec<Watcher<'a>>,
    /// Called after every so many steps.
    regular: Vec<(u64, Watcher<'a>)>,
    checkpoint: Option<(u64, PathBuf)>,
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run of {} steps of {:?}", self.steps, self.step)
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(simulation: &'a Simulation, step: &'a Step, steps: u64) -> Self {
        Self { simulation, step, steps, bar: false, watchers: Vec::new(), regular: Vec::new(), checkpoint: None }
    }

    /// Shows a bar on the terminal; nothing where standard error is none.
    pub fn bar(self) -> Self {
        Self { bar: true, ..self }
    }

    /// Calls a function after every `steps` steps, between two steps, to write output, to plot or to stop early: it may
    /// give `()`, a [`ControlFlow`], or a [`Result`] of either. Its time isn't the run's. 0 is taken for 1.
    pub fn every<V: Verdict>(mut self, steps: u64, mut act: impl FnMut(Progress) -> V + 'a) -> Self {
        self.regular.push((steps.max(1), Box::new(move |progress| act(progress).verdict())));
        self
    }

    /// Calls a function about ten times a second, between two steps, and after the last one.
    pub fn watch<V: Verdict>(mut self, mut act: impl FnMut(Progress) -> V + 'a) -> Self {
        self.watchers.push(Box::new(move |progress| act(progress).verdict()));
        self
    }

    /// Writes a checkpoint after every `steps` steps, at the end, and when the run is interrupted
    /// ([`Interrupt`](crate::Interrupt)). 0 is taken for 1. A run whose checkpoints couldn't be written there ends before
    /// its first step.
    pub fn checkpoint(self, path: impl Into<PathBuf>, steps: u64) -> Self {
        Self { checkpoint: Some((steps.max(1), path.into())), ..self }
    }

    /// Does the steps.
    pub fn finish(mut self) -> Result<Report> {
        let (simulation, step, steps) = (self.simulation, self.step, self.steps);
        let (shared, plan) = (&simulation.shared, step.plan());
        if step.simulation() != shared.id {
            return Err(Error::Foreign { what: "the step of", name: step.kernels().join(", ") });
        }
        shared.state()?.check()?;
        if let Some((_, path)) = &self.checkpoint {
            files::try_place(path)?;
        }
        let bar = self.bar.then(|| ProgressBar::new(steps));
        let (mut done, mut elapsed, mut ahead) = (0, Duration::ZERO, 1);
        let (mut exchanged, replayed) = (Traffic::default(), step.replayed());
        while done < steps {
            let count = self.next_stop(done, steps.min(done + ahead)) - done;
            let time = step.advance(count)?;
            exchanged += step.traffic(count);
            done += count;
            elapsed += time;
            let each = time.as_secs_f64() / count as f64;
            ahead = ((PROGRESS_SECONDS / each) as u64).clamp(1, MOST_STEPS_AHEAD);
            let points_per_second = per_second(plan.points * done, elapsed.as_secs_f64());
            let progress = Progress { done, steps, elapsed, points_per_second };
            if let Some(bar) = &bar {
                bar.show(&progress);
            }
            let goes_on = self.tell(progress)?;
            self.keep(done, done == steps || goes_on.is_break())?;
            if goes_on.is_break() {
                break;
            }
        }
        Ok(Report {
            kernels: step.kernels(),
            grid: simulation.cells(),
            steps: done,
            devices: simulation.devices(),
            exchange: step.exchange(),
            exchanged,
            shapes: simulation.shapes(),
            recorded: step.replayed() - replayed,
            seconds: elapsed.as_secs_f64(),
            points: plan.points * done,
            bytes: plan.bytes * done,
            copy_bandwidth: if done > 0 { shared.copy_bandwidth()? } else { None },
        })
    }

    /// The step before which the run mustn't be left alone, at most `latest`.
    fn next_stop(&self, done: u64, latest: u64) -> u64 {
        let checkpoint = self.checkpoint.iter().map(|(steps, _)| *steps);
        let regular = self.regular.iter().map(|(steps, _)| *steps).chain(checkpoint);
        regular.map(|steps| (done / steps + 1).saturating_mul(steps)).fold(latest, u64::min)
    }

    fn tell(&mut self, progress: Progress) -> Result<ControlFlow<()>> {
        let due = self.regular.iter_mut().filter(|(steps, _)| progress.done.is_multiple_of(*steps));
        let mut goes_on = ControlFlow::Continue(());
        for act in due.map(|(_, act)| act).chain(&mut self.watchers) {
            if act(progress)?.is_break() {
                goes_on = ControlFlow::Break(());
            }
        }
        Ok(goes_on)
    }

    /// Writes the checkpoint if it is time, and ends a run that was interrupted.
    fn keep(&self, done: u64, last: bool) -> Result<()> {
        let interrupted = interrupt::asked() && !last;
        let saved = match &self.checkpoint {
            Some((steps, path)) if last || interrupted || done.is_multiple_of(*steps) => {
                self.simulation.checkpoint(path)
            }
            _ => Ok(()),
        };
        if !interrupted {
            return saved;
        }
        let state = self.simulation.shared.state()?;
        let (steps, checkpoint) = (state.steps, state.last_checkpoint.clone());
        Err(Error::Interrupted { steps, checkpoint, unsaved: saved.err().map(Box::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn simulation() -> (Simulation, Step) {
        let sim = Simulation::on([4, 3, 2]).devices("reference").measure_bandwidth(false).build().unwrap();
        let step = sim.step(|_| ()).unwrap();
        (sim, step)
    }

    #[test]
    fn a_place_where_no_checkpoint_can_be_is_told_before_the_first_step() {
        let (sim, step) = simulation();
        let folder = Folder::new("run-checkpoint");
        for bad in [folder.path("no/such/folder"), folder.path("")] {
            let mut called = 0;
            let error = sim.start(&step, 10).checkpoint(&bad, 5).every(1, |_| called += 1).finish().unwrap_err();
            assert!(matches!(&error, Error::Write { path, .. } if *path == bad), "{error}");
            assert_eq!(called, 0);
        }
        sim.start(&step, 3).checkpoint(folder.path("good"), 0).finish().unwrap();
        assert!(folder.path("good").is_file());
    }

    /// Signals change the whole process, so this test runs itself in a process of its own.
    #[cfg(unix)]
    #[test]
    fn an_interrupted_run_tells_its_step_even_where_its_checkpoint_cannot_be_written() {
        const CHILD: &str = "POLYHALO_TEST_INTERRUPTED_RUN";
        if std::env::var_os(CHILD).is_none() {
            let name = concat!(
                "run::tests::",
                "an_interrupted_run_tells_its_step_even_where_its_checkpoint_cannot_be_written"
            );
            let mut test = std::process::Command::new(std::env::current_exe().unwrap());
            let output = test.args(["--exact", name]).env(CHILD, "1").output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
            return;
        }
        crate::Interrupt::install().unwrap();
        let (sim, step) = simulation();
        let folder = Folder::new("run-interrupted");
        let below = folder.path("below");
        std::fs::create_dir(&below).unwrap();
        let run = sim.start(&step, 10).checkpoint(below.join("checkpoint"), 100).every(1, |progress| {
            if progress.done == 3 {
                std::fs::remove_dir(&below).unwrap();
                signal_hook::low_level::raise(signal_hook::consts::SIGINT).unwrap();
            }
        });
        let error = run.finish().unwrap_err();
        let Error::Interrupted { steps: 3, checkpoint: None, unsaved: Some(unsaved) } = &error else {
            panic!("{error}")
        };
        assert!(matches!(**unsaved, Error::Write { .. }), "{unsaved}");
        assert!(error.to_string().starts_with("the run was interrupted after step 3, and"), "{error}");
        // The request stays.
        assert!(matches!(sim.run(&step, 10), Err(Error::Interrupted { steps: 4, unsaved: None, .. })));
        assert_eq!(sim.run(&step, 1).unwrap().steps, 1);
    }
}
