//! Stopping a long run from outside: Ctrl-C, or the signal that batch systems send before they end a job.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Error, Result};

/// Set by the first signal, and never cleared: whoever asked for the end wants every later run to end too.
static ASKED: AtomicBool = AtomicBool::new(false);

/// The signals that a program has asked to be told of.
///
/// A library must not change what a signal does to the program that it is part of. So nothing happens until the
/// *program* calls [`install`](Self::install). From then on, the first Ctrl-C (SIGINT) or SIGTERM lets the step that is
/// being done end, and then the run; a Ctrl-C after that ends the program at once, as it would have without.
///
/// The request stays: a later run of the program ends after its first steps too, and with the same error unless these were
/// all that it had.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt(());

impl Interrupt {
    /// Catches the signals from now on. Calling it again changes nothing.
    pub fn install() -> Result<Self> {
        static INSTALLED: Mutex<bool> = Mutex::new(false);
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*installed {
            let caught = || -> io::Result<()> {
                // In the order of their effects: a signal kills only if one was there before. SIGTERM never does, because
                // `timeout` and batch systems send it twice, to the process and to its group; SIGKILL follows anyway.
                flag::register_conditional_default(SIGINT, &ASKED)?;
                flag::register(SIGINT, &ASKED)?;
                flag::register(SIGTERM, &ASKED)?;
                Ok(())
            };
            caught().map_err(|source| Error::System { call: "catching SIGINT and SIGTERM".into(), source })?;
            *installed = true;
        }
        Ok(Self(()))
    }

    /// Whether a signal has come.
    pub fn is_set(self) -> bool {
        asked()
    }
}

/// Whether a signal has come that a program asked to be told of.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use signal_hook::low_level::raise;

    use super::*;

    const CHILD: &str = "POLYHALO_TEST_INTERRUPTS";

    /// Signals change the whole process, so each case runs this test in a process of its own.
    #[test]
    fn the_first_signal_is_told_and_a_ctrl_c_after_it_kills() {
        if let Ok(signals) = std::env::var(CHILD) {
            return child(&signals);
        }
        let check = |signals: &str, expected: &str, killed: Option<i32>| {
            // Tests are named without the crate.
            let name = format!("{}::the_first_signal_is_told_and_a_ctrl_c_after_it_kills", module_path!());
            let arguments = ["--exact", name.split_once("::").unwrap().1, "--nocapture"];
            let output =
                Command::new(std::env::current_exe().unwrap()).args(arguments).env(CHILD, signals).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines: Vec<_> = text.lines().filter_map(|line| line.split("asked: ").nth(1)).collect();
            assert_eq!((lines.concat().as_str(), output.status.signal()), (expected, killed), "{signals}: {text}");
            assert!(killed.is_some() || output.status.success(), "{text}");
        };
        check("", "n", None);
        check("i", "ny", None);
        check("t", "ny", None);
        check("tt", "nyy", None);
        check("ii", "ny", Some(SIGINT));
        check("tti", "nyy", Some(SIGINT));
    }

    /// Tells after each signal whether one has come.
    fn child(signals: &str) {
        assert!(!asked(), "nothing is caught before a program asks for it");
        let interrupt = Interrupt::install().unwrap();
        let again = Interrupt::install().unwrap();
        let tell = || {
            assert_eq!(interrupt.is_set(), again.is_set());
            // Each answer on a line of its own, behind whatever the test harness has written there.
            println!("asked: {}", if interrupt.is_set() { "y" } else { "n" });
        };
        tell();
        for signal in signals.chars() {
            raise(if signal == 'i' { SIGINT } else { SIGTERM }).unwrap();
            tell();
        }
    }
}
