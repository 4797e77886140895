//! The command-line program: inspect generated kernels, list devices, check optional tools.

mod devices;
mod doctor;
mod inspect;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// 3-D stencils written once in annotated Rust, for any vendor's GPUs and for CPUs.
#[derive(Parser)]
#[command(name = "polyhalo", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show what the stencils of a Rust source file become, without compiling your crate.
    Inspect(inspect::Inspect),
    /// List back ends and devices, and say why an absent one is absent.
    Devices(devices::Devices),
    /// Check the optional tools, and say what each gives and how to install it.
    Doctor(doctor::Doctor),
    /// Run a program on several sets of devices, every step checked against the reference device.
    Verify(verify::Verify),
}

/// What went wrong, in one readable paragraph.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of stack for whatever follows the nesting of a source.
const DEEP_STACK: usize = 1 << 30;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader such as `head` that has seen enough is no failure.
        Err(failure) if is_broken_pipe(&*failure) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        // Sources may be nested deeply, and whoever walks them goes as deep.
        Command::Inspect(inspect) => std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, || inspect.run())?;
            thread.join().map_err(|_| "the inspector failed; please report this file")?
        }),
        Command::Devices(devices) => devices.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Verify(verify) => verify.run(),
    }
}

fn is_broken_pipe(failure: &(dyn std::error::Error + 'static)) -> bool {
    let io = failure.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
