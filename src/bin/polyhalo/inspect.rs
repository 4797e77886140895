//! `polyhalo inspect`: what the stencils of a source file become.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use polyhalo_codegen::emit::{Code, CudaC, EMITTERS, Emitter, Target, text::ir};
use polyhalo_codegen::front::{Compiled, SourceKernel, kernels_of_file, unbalanced};
use polyhalo_codegen::ir::Axis;
use polyhalo_codegen::offline::{Cache, Outcome, nvrtc};
use polyhalo_codegen::{Diagnostic, analyse};

use crate::Failure;

/// Arguments of `polyhalo inspect`.
#[derive(Args)]
pub(crate) struct Inspect {
    /// A Rust source file with `#[stencil]` functions or modules; `FILE:NAME` for one stencil of it.
    file: PathBuf,
    /// Only the stencil of this name: a function with all its instances (`lap`), or one instance (`lap_f32_2`).
    #[arg(long)]
    kernel: Option<String>,
    /// What to show besides the summary; may be given several times.
    #[arg(long, value_enum)]
    target: Vec<Show>,
    /// Write each text into a file of this folder instead of showing it; SPIR-V also as a binary module.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// A form of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Show {
    /// Your function.
    Rust,
    /// The intermediate form: closures inlined, loops unrolled.
    Ir,
    /// Native Rust for the CPU.
    Host,
    /// CUDA C.
    Cuda,
    /// PTX, compiled by NVRTC from the CUDA C.
    Ptx,
    /// HIP.
    Hip,
    /// OpenCL C.
    Opencl,
    /// SPIR-V, disassembled.
    Spirv,
    /// All of them.
    All,
}

impl Show {
    const EACH: [Show; 8] =
        [Show::Rust, Show::Ir, Show::Host, Show::Cuda, Show::Ptx, Show::Hip, Show::Opencl, Show::Spirv];

    /// The emitter behind a form, where there is one.
    fn target(self) -> Option<Target> {
        match self {
            Show::Host => Some(Target::Native),
            Show::Cuda => Some(Target::Cuda),
            Show::Hip => Some(Target::Hip),
            Show::Opencl => Some(Target::OpenCl),
            Show::Spirv => Some(Target::SpirV),
            Show::Rust | Show::Ir | Show::Ptx | Show::All => None,
        }
    }

    /// The word on the command line, and the ending of a file in `--out`.
    fn name(self) -> &'static str {
        match self {
            Show::Rust => "rust",
            Show::Ir => "ir",
            Show::Host => "host",
            Show::Cuda => "cuda",
            Show::Ptx => "ptx",
            Show::Hip => "hip",
            Show::Opencl => "opencl",
            Show::Spirv => "spirv",
            Show::All => "all",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Show::Rust => "rs",
            Show::Ir => "ir",
            Show::Host => "host.rs",
            Show::Ptx => "ptx",
            Show::Spirv => "spvasm",
            Show::Cuda | Show::Hip | Show::Opencl => self.target().map_or("txt", Target::extension),
            Show::All => "txt",
        }
    }
}

impl Inspect {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        self.split_name()?;
        let text = std::fs::read_to_string(&self.file)
            .map_err(|error| format!("can't read {}: {error}", self.file.display()))?;
        let source = kernels_of_file(&text).map_err(|error| match unbalanced(&text) {
            Some(bracket) => format!("{}:{bracket}", self.file.display()),
            None => {
                let at = error.span().start();
                format!("{}:{}:{}: not Rust: {error}", self.file.display(), at.line, at.column + 1)
            }
        })?;
        let chosen: Vec<&SourceKernel> = source.kernels.iter().filter(|kernel| self.is_chosen(kernel)).collect();
        let mut mistakes = Mistakes::default();
        if self.kernel.is_none() {
            for refused in &source.mistakes {
                mistakes.modules += 1;
                mistakes.show(&self.file, &refused.diagnostics);
            }
        }
        if chosen.is_empty() && mistakes.modules == 0 {
            return Err(self.nothing(&source.kernels).into());
        }
        if let Some(folder) = &self.out {
            std::fs::create_dir_all(folder).map_err(|error| format!("can't create {}: {error}", folder.display()))?;
        }
        let mut out = std::io::stdout().lock();
        let mut taken: Vec<String> = Vec::new();
        for kernel in chosen {
            let stem = free_stem(&kernel.name, &mut taken);
            match self.compile(kernel) {
                Ok(compiled) => self.show(&mut out, kernel, &compiled, &text, &stem)?,
                Err(diagnostics) => {
                    mistakes.stencils.insert((kernel.line, kernel.function_name()));
                    mistakes.show(&self.file, &diagnostics);
                }
            }
        }
        match (mistakes.stencils.len(), mistakes.modules) {
            (0, 0) => Ok(()),
            (0, _) => Err("a module is wrong".into()),
            (1, _) => Err("one stencil does not compile".into()),
            (n, _) => Err(format!("{n} stencils do not compile").into()),
        }
    }

    /// Takes the name off `FILE:NAME`.
    fn split_name(&mut self) -> Result<(), Failure> {
        let given = self.file.to_string_lossy().into_owned();
        let Some((file, name)) = given.rsplit_once(':').filter(|_| !self.file.exists()) else { return Ok(()) };
        if file.is_empty() || name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Ok(());
        }
        if let Some(kernel) = &self.kernel {
            return Err(format!("two stencils are named: {name} after the file and --kernel {kernel}").into());
        }
        (self.file, self.kernel) = (PathBuf::from(file), Some(name.to_owned()));
        Ok(())
    }

    fn is_chosen(&self, kernel: &SourceKernel) -> bool {
        self.kernel.as_ref().is_none_or(|name| *name == kernel.name || *name == kernel.function_name())
    }

    fn nothing(&self, all: &[SourceKernel]) -> String {
        let file = self.file.display();
        let names: Vec<&str> = all.iter().map(|kernel| kernel.name.as_str()).collect();
        match (&self.kernel, names.is_empty()) {
            (_, true) => format!("{file} has no function with the attribute #[stencil]"),
            (Some(name), false) => format!("{file} has no stencil `{name}`; it has {}", names.join(", ")),
            (None, false) => unreachable!("without a name every stencil is chosen"),
        }
    }

    fn compile(&self, kernel: &SourceKernel) -> Result<Compiled, Vec<Diagnostic>> {
        if let Err(message) = &kernel.options {
            let line = u32::try_from(kernel.line).unwrap_or(0);
            let place = polyhalo_codegen::ir::Place { line, ..Default::default() };
            return Err(vec![Diagnostic::new(place, message.clone())]);
        }
        let mut compiled = kernel.compile().map_err(|refused| refused.diagnostics)?;
        compiled.name_file(&self.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        Ok(compiled)
    }

    fn show(
        &self,
        out: &mut impl Write,
        kernel: &SourceKernel,
        compiled: &Compiled,
        text: &str,
        stem: &str,
    ) -> Result<(), Failure> {
        writeln!(out, "{}", summary(&self.file, kernel, compiled))?;
        for show in self.targets() {
            let shown = form(show, kernel, compiled, text);
            match (&self.out, shown) {
                (None, Ok(shown)) => writeln!(out, "---- {} ----\n{}", show.name(), shown.trim_end())?,
                (None, Err(reason)) => writeln!(out, "---- {} ----\nnot available: {reason}", show.name())?,
                (Some(folder), Ok(shown)) => {
                    let file = folder.join(format!("{stem}.{}", show.extension()));
                    save(&file, shown.as_bytes())?;
                    writeln!(out, "wrote {}", file.display())?;
                    if let Some(Code::Words(_)) = show.target().map(|target| emit(target, compiled)) {
                        let file = folder.join(format!("{stem}.{}", Target::SpirV.extension()));
                        save(&file, &emit(Target::SpirV, compiled).bytes())?;
                        writeln!(out, "wrote {}", file.display())?;
                    }
                }
                (Some(_), Err(reason)) => writeln!(out, "no {}: {reason}", show.name())?,
            }
        }
        Ok(())
    }

    fn targets(&self) -> Vec<Show> {
        let mut targets = match (self.target.contains(&Show::All), self.target.is_empty(), &self.out) {
            (true, _, _) | (false, true, Some(_)) => Show::EACH.to_vec(),
            (false, ..) => self.target.clone(),
        };
        targets.sort();
        targets.dedup();
        targets
    }
}

/// What is wrong with a file, each place once: instances share their function, and kernels what their module has.
#[derive(Default)]
struct Mistakes {
    /// Functions that don't compile, by line and name.
    stencils: BTreeSet<(usize, String)>,
    /// How many modules are wrong in themselves.
    modules: usize,
    shown: BTreeSet<(u32, u32)>,
}

impl Mistakes {
    fn show(&mut self, file: &Path, diagnostics: &[Diagnostic]) {
        let place = |diagnostic: &Diagnostic| (diagnostic.place.line, diagnostic.place.column);
        for diagnostic in diagnostics.iter().filter(|diagnostic| !self.shown.contains(&place(diagnostic))) {
            eprintln!("error: {}:{diagnostic}", file.display());
        }
        self.shown.extend(diagnostics.iter().map(place));
    }
}

fn save(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(file, bytes).map_err(|error| format!("can't write {}: {error}", file.display()).into())
}

fn emit(target: Target, compiled: &Compiled) -> Code {
    let emitter = EMITTERS.iter().find(|emitter| emitter.target() == target);
    emitter.expect("every target has an emitter").emit(&compiled.kernel)
}

/// One form of the kernel, or why it is not to be had.
fn form(show: Show, kernel: &SourceKernel, compiled: &Compiled, text: &str) -> Result<String, String> {
    match show {
        Show::Rust => Ok(kernel.text(text)),
        Show::Ir => Ok(ir::show(&compiled.kernel)),
        Show::Ptx => {
            let cuda = CudaC.emit(&compiled.kernel).readable();
            match nvrtc::ptx(
                &Cache::open(None),
                &cuda,
                &compiled.kernel.name,
                nvrtc::OLDEST_ARCH,
                compiled.kernel.contract,
            ) {
                Outcome::Built(ptx) => Ok(ptx),
                Outcome::Absent(reason) | Outcome::Rejected(reason) => Err(reason),
            }
        }
        Show::Host | Show::Cuda | Show::Hip | Show::Opencl | Show::Spirv => {
            Ok(emit(show.target().expect("these have emitters"), compiled).readable())
        }
        Show::All => unreachable!("`all` is taken apart before"),
    }
}

/// Parameters, halos with the lines that ask for them, and costs.
fn summary(file: &Path, source: &SourceKernel, compiled: &Compiled) -> String {
    let kernel = &compiled.kernel;
    let analysis = analyse(kernel);
    let instance = if source.instance.is_empty() { String::new() } else { format!(" with {}", source.instance) };
    let mut text = format!("stencil {}{instance} ({}:{})\n", kernel.name, file.display(), source.line);
    let mut line = |args: std::fmt::Arguments<'_>| writeln!(text, "{args}").expect("a string takes everything");
    for (id, field) in kernel.fields.enumerate() {
        let footprint = &analysis.footprints[id.index()];
        let points = match footprint.reads.len() {
            0 => "never read".to_owned(),
            1 => "read at 1 point".to_owned(),
            points => format!("read at {points} points"),
        };
        line(format_args!("  field  {}: {}, {points}", field.name, field.ty));
        for axis in Axis::ALL {
            for (sign, side) in [(-1, '-'), (1, '+')] {
                let reach = footprint.reach(axis, sign);
                if let Some((offset, place)) = reach.because {
                    line(format_args!(
                        "           halo {} on {side}{} because of {}[{offset}] in line {}",
                        reach.cells,
                        axis.name(),
                        field.name,
                        place.line
                    ));
                }
            }
        }
    }
    for param in kernel.params.iter() {
        line(format_args!("  scalar {}: {}", param.name, param.ty));
    }
    let mut outputs = kernel.outputs.iter();
    while let Some(output) = outputs.next() {
        line(format_args!("  result {}", output.ty));
        if output.has_halves() {
            // The sum of the upper halves is no result of its own.
            outputs.next();
        }
    }
    line(format_args!(
        "  per point: {}, {}, {} flops ({} operations), at least {} bytes, {:.3} flops/byte",
        count(analysis.loads, "load"),
        count(analysis.stores, "store"),
        analysis.flops,
        analysis.operations,
        analysis.bytes,
        analysis.intensity()
    ));
    if analysis.uses_index {
        line(format_args!("  uses the global index of its point"));
    }
    if !analysis.vendor_functions.is_empty() {
        let names: Vec<&str> = analysis.vendor_functions.iter().map(|function| function.name()).collect();
        line(format_args!("  {}: targets agree only within their vendors' error", names.join(", ")));
    }
    if kernel.contract {
        line(format_args!(
            "  multiply and add may be fused (#[stencil(contract)]): results may differ between targets"
        ));
    }
    text
}

/// `1 load`, `2 loads`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The name of a kernel's files: its own, numbered when a kernel of another module has it already.
fn free_stem(name: &str, taken: &mut Vec<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let stem = std::iter::once(name.to_owned()).chain(numbered).find(|stem| !taken.contains(stem));
    let stem = stem.expect("there are more numbers than kernels");
    taken.push(stem.clone());
    stem
}
