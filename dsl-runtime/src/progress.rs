//! The progress of a long run, on the terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar as Bar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::report::Progress;

/// What a line shows; the message is the speed.
const LINE: &str = "{wide_bar} {percent:>3} %, {pos}/{len} steps{msg}, {elapsed_precise} elapsed, {eta_precise} left";

/// A bar on standard error that follows a run: steps, percent, points per second, time elapsed and left.
///
/// It draws nothing where standard error is no terminal, and its line disappears when it is dropped. The times are
/// those on the clock, with everything that is done between steps.
#[derive(Debug)]
pub struct ProgressBar(Bar);

impl ProgressBar {
    /// A bar for a run of `steps` steps that starts now.
    pub fn new(steps: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self::on(if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }, steps)
    }

    fn on(target: ProgressDrawTarget, steps: u64) -> Self {
        let style = ProgressStyle::with_template(LINE).expect("the template is right");
        Self(Bar::with_draw_target(Some(steps), target).with_style(style).with_finish(ProgressFinish::AndClear))
    }

    /// Shows how far a run has come.
    pub fn show(&self, progress: &Progress) {
        self.0.set_length(progress.steps);
        self.0.set_message(speed(progress));
        self.0.set_position(progress.done);
    }

    /// Writes a line above the bar; where there is no bar, just a line on standard error.
    pub fn print(&self, line: &str) {
        if self.0.is_hidden() { eprintln!("{line}") } else { self.0.println(line) }
    }
}

/// `, 1.311 GPts/s`; nothing as long as it isn't known.
fn speed(progress: &Progress) -> String {
    let giga = progress.points_per_second / 1e9;
    if giga > 0.0 { format!(", {giga:.3} GPts/s") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use indicatif::TermLike;

    use super::*;

    /// A terminal that keeps everything that is written to it.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl Paper {
        fn take(&self) -> String {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)?;
            self.write_str("\n")
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write_str("\r")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn progress(done: u64, points_per_second: f64) -> Progress {
        Progress { done, steps: 1000, elapsed: Duration::from_secs(12), points_per_second }
    }

    #[test]
    fn a_line_tells_steps_percent_speed_and_times() {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(paper.clone()), 255);
        let bar = ProgressBar::on(target, 1000);
        let show = |progress: Progress| {
            bar.show(&progress);
            // Not left to the clock that spares terminals.
            bar.0.force_draw();
            paper.take()
        };
        let line = show(progress(0, 0.0));
        assert!(line.contains("  0 %, 0/1000 steps, 00:00:"), "{line}");
        let line = show(progress(400, 1.311e9));
        assert!(line.contains(" 40 %, 400/1000 steps, 1.311 GPts/s, 00:00:"), "{line}");
        assert!(line.contains(" elapsed, 00:") && line.trim_end().ends_with(" left"), "{line}");
        bar.print("wrote u.vti");
        assert!(paper.take().contains("wrote u.vti"));
        drop(bar);
        assert!(!paper.take().contains("steps"), "the line disappears");
    }

    #[test]
    fn nothing_is_drawn_without_a_terminal() {
        let bar = ProgressBar::on(ProgressDrawTarget::hidden(), 1000);
        bar.show(&progress(1000, 1e9));
        assert!(bar.0.is_hidden());
        if !io::stderr().is_terminal() {
            assert!(ProgressBar::new(10).0.is_hidden());
        }
    }
}
