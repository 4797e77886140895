//! Runs another program to its end: captures what it prints, feeds it its input, and never waits for ever.

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a tool may take before it is ended; each takes well under a second when all is well.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The most that is kept of what a program prints; past that its output is no longer read.
const KEPT_BYTES: usize = 64 << 20;

/// How long the pipes of an ended program are waited for: a child of its own may hold them open.
const GRACE: Duration = Duration::from_secs(3);

/// A program that came to its end, well or not.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its exit code or the signal that ended it.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// All that was printed, standard error first, as text without the surrounding blank lines.
    pub fn log(&self) -> String {
        let (errors, output) = (text(&self.stderr), text(&self.stdout));
        match (errors.trim(), output.trim()) {
            (errors, "") => errors.to_string(),
            ("", output) => output.to_string(),
            (errors, output) => format!("{errors}\n{output}"),
        }
    }

    /// Whether a signal ended the program: it crashed instead of answering.
    pub fn crashed(&self) -> bool {
        // A tool behind a shell script reports 128 + signal.
        self.status.code().is_none_or(|code| (129..=159).contains(&code))
    }
}

/// Bytes as text; what is no UTF-8 shows as replacement characters.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs `command` with `stdin` as its input. An error says why it did not come to its end: it could not be started, or it
/// took longer than `limit` and was ended together with the programs that it had started.
pub fn run(mut command: Command, stdin: &[u8], limit: Duration) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Messages are read by us, so they must not be translated.
    command.env("LC_ALL", "C");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);

    let started = Instant::now();
    let mut child = start(&mut command).map_err(|cause| format!("{name} could not be started: {cause}"))?;
    feed(child.stdin.take(), stdin);
    let stdout = Pipe::drain(child.stdout.take());
    let stderr = Pipe::drain(child.stderr.take());

    let Some(status) = wait(&mut child, &stdout, started, limit) else {
        end(&mut child);
        return Err(format!("{name} was ended after {:.1} seconds without an answer", limit.as_secs_f64()));
    };
    let status = status.map_err(|cause| format!("{name} could not be waited for: {cause}"))?;
    Ok(Finished { status, stdout: stdout.finish(), stderr: stderr.finish() })
}

/// Starts `command`. A file that is just being written, or still open in a process that was forked meanwhile, is busy for
/// a moment only.
fn start(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..50 {
        match command.spawn() {
            Err(cause) if cause.kind() == ErrorKind::ExecutableFileBusy => thread::sleep(Duration::from_millis(10)),
            answer => return answer,
        }
    }
    command.spawn()
}

/// Writes `input` from a thread of its own, so that a child that prints before it reads blocks nobody.
fn feed(pipe: Option<impl Write + Send + 'static>, input: &[u8]) {
    let (Some(mut pipe), input) = (pipe, input.to_vec()) else {
        return;
    };
    // A child that does not read its input closes the pipe; that is its own business.
    thread::spawn(move || pipe.write_all(&input));
}

/// One of the child's outputs, read by a thread of its own.
struct Pipe {
    kept: Arc<Mutex<Vec<u8>>>,
    closed: Receiver<()>,
}

impl Pipe {
    fn drain(pipe: Option<impl Read + Send + 'static>) -> Pipe {
        let (closing, closed) = channel();
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let filled = Arc::clone(&kept);
        thread::spawn(move || {
            let _closes_at_the_end = closing;
            let Some(mut pipe) = pipe else { return };
            let mut part = [0; 16 << 10];
            while let Ok(count) = pipe.read(&mut part) {
                let mut filled = filled.lock().unwrap_or_else(PoisonError::into_inner);
                if count == 0 || filled.len() + count > KEPT_BYTES {
                    return;
                }
                filled.extend_from_slice(&part[..count]);
            }
        });
        Pipe { kept, closed }
    }

    /// All that came through, once the pipe is closed or was waited for long enough.
    fn finish(self) -> Vec<u8> {
        let _: Result<(), _> = self.closed.recv_timeout(GRACE);
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Waits for the child's end; `None` when `limit` comes first.
fn wait(child: &mut Child, stdout: &Pipe, started: Instant, limit: Duration) -> Option<std::io::Result<ExitStatus>> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(Ok(status)),
            Ok(None) if started.elapsed() >= limit => return None,
            // Nearly always the end of the output announces the end of the program.
            Ok(None) => match stdout.closed.recv_timeout(Duration::from_millis(5)) {
                Err(RecvTimeoutError::Disconnected) => thread::sleep(Duration::from_millis(1)),
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            },
            Err(cause) => return Some(Err(cause)),
        }
    }
}

/// Ends the child and the programs that it started, which share its process group.
fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            // POSIX; `pid_t` is an `int` on every Unix that Rust knows.
            safe fn kill(process: i32, signal: i32) -> i32;
        }
        const SIGKILL: i32 = 9;
        // The group carries the child's own number, which is not reused before `wait` below.
        if let Ok(group) = i32::try_from(child.id()) {
            kill(-group, SIGKILL);
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_errors_and_code_are_kept_apart() {
        let done = run(shell("cat; echo oops >&2; exit 3"), b"hello", LIMIT).unwrap();
        assert_eq!(done.stdout, b"hello");
        assert_eq!(done.stderr, b"oops\n");
        assert_eq!(done.status.code(), Some(3));
        assert_eq!(done.log(), "oops\nhello");
        assert!(!done.crashed());
    }

    #[test]
    fn more_than_a_pipe_holds_passes_both_ways() {
        let big = vec![b'x'; 3 << 20];
        let done = run(shell("cat; head -c 1000000 /dev/zero >&2"), &big, LIMIT).unwrap();
        assert_eq!(done.stdout, big);
        assert_eq!(done.stderr.len(), 1_000_000);
    }

    #[test]
    fn unread_input_is_no_error() {
        let done = run(shell("exit 0"), &vec![b'x'; 3 << 20], LIMIT).unwrap();
        assert!(done.status.success());
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let folder = crate::offline::private::Folder::new().unwrap();
        let mark = folder.path().join("mark");
        // The inner shell outlives its parent unless the whole group is ended.
        let script = format!("(sleep 1; touch '{}') & sleep 600", mark.display());
        let reason = run(shell(&script), b"", Duration::from_millis(200)).unwrap_err();
        assert!(reason.contains("sh was ended after 0.2 seconds"), "{reason}");
        thread::sleep(Duration::from_millis(1500));
        assert!(!mark.exists(), "the child's child lived on");
    }

    #[test]
    fn a_child_left_behind_does_not_hold_the_answer_back() {
        // The stranger keeps the pipe open for longer than any test may run.
        let done = run(shell("sleep 100000 & echo $!"), b"", LIMIT).unwrap();
        let stranger = text(&done.stdout).trim().to_string();
        assert!(stranger.parse::<u32>().is_ok(), "{stranger:?}");
        let killed = run(shell(&format!("kill {stranger}")), b"", LIMIT).unwrap();
        assert!(done.status.success() && killed.status.success());
    }

    #[test]
    fn a_signal_is_a_crash() {
        assert!(run(shell("kill -SEGV $$"), b"", LIMIT).unwrap().crashed());
        assert!(run(shell("exit 139"), b"", LIMIT).unwrap().crashed());
    }

    #[test]
    fn a_missing_program_is_named() {
        let reason = run(Command::new("/no/such/program"), b"", LIMIT).unwrap_err();
        assert!(reason.contains("/no/such/program could not be started"), "{reason}");
    }
}
