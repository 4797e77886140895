//! `polyhalo inspect`: what the stencils of a source file become.

mod facts;
mod machine;
mod show;
mod table;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use polyhalo_codegen::Diagnostic;
use polyhalo_codegen::emit::{Code, EMITTERS, Target, text::ir};
use polyhalo_codegen::front::{Compiled, SourceKernel, kernels_of_file, unbalanced};
use polyhalo_codegen::offline::Usage;
use serde_json::{Value, json};

use crate::Failure;
use show::Show;

/// Arguments of `polyhalo inspect`.
#[derive(Args)]
pub(crate) struct Inspect {
    /// A Rust source file with `#[stencil]` functions or modules; `FILE:NAME` for one stencil of it.
    file: PathBuf,
    /// Only the stencil of this name: a function with all its instances (`lap`), or one instance (`lap_f32_2`).
    #[arg(long)]
    kernel: Option<String>,
    /// What to show besides the summary; may be given several times. What a vendor's tool makes comes with a table of
    /// registers, spills, memory, loads and stores. A tool that is missing is an error, with `all` a line.
    #[arg(long, value_enum)]
    target: Vec<Show>,
    /// The GPU to compile for: `sm_90` (the default of `sass`), `gfx90a` (of `gcn`), `pvc` (of `pvc`), or others that
    /// ptxas, clang and ocloc know; may be given several times, and adds its target.
    #[arg(long, value_delimiter = ',')]
    arch: Vec<String>,
    /// Write each text into a file of this folder instead of showing it; SPIR-V also as a binary module.
    #[arg(long)]
    out: Option<PathBuf>,
    /// One JSON document instead of text: each kernel's facts and what it uses on each compiled target (`ptx`, `sass`,
    /// `gcn` and `pvc` unless some are named). Texts are written with `--out` only.
    #[arg(long)]
    json: bool,
}

/// A stencil that compiles.
#[derive(Clone, Copy)]
struct Stencil<'a> {
    source: &'a SourceKernel,
    compiled: &'a Compiled,
    /// The whole file.
    text: &'a str,
    /// The name of its files.
    stem: &'a str,
}

/// One text to make.
struct Wanted {
    show: Show,
    arch: Option<String>,
    /// Whether it was asked for by name: then it is an error if it can't be had.
    by_name: bool,
}

impl Wanted {
    /// `sass sm_90`; `pvc` is the name of a form and of a GPU.
    fn title(&self) -> String {
        match &self.arch {
            Some(arch) if arch != self.show.name() => format!("{} {arch}", self.show.name()),
            Some(_) | None => self.show.name().to_owned(),
        }
    }

    /// `heat.sm_90.sass`.
    fn file_name(&self, stem: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
        let arch = self.arch.iter().map(|arch| format!(".{}", arch.chars().map(plain).collect::<String>()));
        format!("{stem}{}.{}", arch.collect::<String>(), self.show.extension())
    }
}

/// A text, and what its kernels use where a vendor's tool made it.
struct Form {
    text: String,
    tools: Option<String>,
    kernels: Vec<Usage>,
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
        let wanted = self.wanted()?;
        let mut out = std::io::stdout().lock();
        let (mut taken, mut shown, mut lacking) = (Vec::new(), Vec::new(), BTreeSet::new());
        for kernel in chosen {
            let stem = free_stem(&kernel.name, &mut taken);
            match self.compile(kernel) {
                Ok(compiled) => {
                    let stencil = Stencil { source: kernel, compiled: &compiled, text: &text, stem: &stem };
                    match self.json {
                        true => shown.push(self.document(stencil, &wanted, &mut lacking)?),
                        false => self.show(&mut out, stencil, &wanted, &mut lacking)?,
                    }
                }
                Err(diagnostics) => {
                    mistakes.stencils.insert((kernel.line, kernel.function_name()));
                    mistakes.show(&self.file, &diagnostics);
                }
            }
        }
        if self.json {
            let document = json!({ "file": self.file.to_string_lossy(), "kernels": shown });
            writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        }
        match (mistakes.stencils.len(), mistakes.modules) {
            (0, 0) if lacking.is_empty() => Ok(()),
            (0, 0) => Err(lacking.into_iter().collect::<Vec<_>>().join("\n").into()),
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
        stencil: Stencil,
        wanted: &[Wanted],
        lacking: &mut BTreeSet<String>,
    ) -> Result<(), Failure> {
        writeln!(out, "{}", facts::summary(&self.file, stencil.source, stencil.compiled))?;
        let stored = facts::stored_bytes(&stencil.compiled.kernel);
        for wanted in wanted {
            let title = wanted.title();
            let shown = match form(wanted, stencil) {
                Ok(shown) => shown,
                Err(reason) if wanted.by_name => {
                    lacking.insert(format!("no {title}: {reason}"));
                    continue;
                }
                Err(reason) if self.out.is_none() => {
                    writeln!(out, "---- {title} ----\nleft out: {reason}")?;
                    continue;
                }
                Err(reason) => {
                    writeln!(out, "no {title}: {reason}")?;
                    continue;
                }
            };
            let table = shown.tools.as_ref().map(|_| table::table(&shown.kernels, stored)).unwrap_or_default();
            let by = shown.tools.as_ref().map(|tools| format!(" by {tools}")).unwrap_or_default();
            match &self.out {
                None if table.is_empty() => writeln!(out, "---- {title} ----\n{}", shown.text.trim_end())?,
                None => writeln!(out, "---- {title}{by} ----\n{table}\n{}", shown.text.trim_end())?,
                Some(folder) => {
                    for file in save_form(folder, stencil, wanted, &shown)? {
                        writeln!(out, "wrote {}", file.display())?;
                    }
                    write!(out, "{table}")?;
                }
            }
        }
        Ok(())
    }

    /// One kernel of the JSON document.
    fn document(&self, stencil: Stencil, wanted: &[Wanted], lacking: &mut BTreeSet<String>) -> Result<Value, Failure> {
        let stored = facts::stored_bytes(&stencil.compiled.kernel);
        let (mut targets, mut files) = (Vec::new(), Vec::new());
        for wanted in wanted.iter().filter(|wanted| self.out.is_some() || Show::COMPILED.contains(&wanted.show)) {
            let shown = form(wanted, stencil);
            if let (Ok(shown), Some(folder)) = (&shown, &self.out) {
                let saved = save_form(folder, stencil, wanted, shown)?;
                files.extend(saved.into_iter().map(|file| file.to_string_lossy().into_owned()));
            }
            if let (Err(reason), true) = (&shown, wanted.by_name) {
                lacking.insert(format!("no {}: {reason}", wanted.title()));
            }
            if Show::COMPILED.contains(&wanted.show) {
                let (tools, kernels, missing) = match &shown {
                    Ok(shown) => (shown.tools.as_ref(), &shown.kernels[..], None),
                    Err(reason) => (None, &[][..], Some(reason)),
                };
                targets.push(json!({
                    "target": wanted.show.name(),
                    "arch": wanted.arch,
                    "tools": tools,
                    "kernels": kernels.iter().map(|used| facts::usage(used, stored)).collect::<Vec<_>>(),
                    "missing": missing,
                }));
            }
        }
        let mut document = facts::facts(stencil.source, stencil.compiled);
        document["targets"] = Value::from(targets);
        document["files"] = Value::from(files);
        Ok(document)
    }

    /// All texts to make of each kernel.
    fn wanted(&self) -> Result<Vec<Wanted>, Failure> {
        let mut arches = Vec::new();
        for arch in &self.arch {
            arches.push((machine::form_of(arch)?, arch));
        }
        let by_name = |show: &Show| self.target.contains(show) || arches.iter().any(|(form, _)| form == show);
        let none_named = self.target.is_empty() && arches.is_empty();
        let mut shows: Vec<Show> = match (self.target.contains(&Show::All), none_named) {
            (true, _) => Show::EACH.to_vec(),
            (false, true) if self.out.is_some() => Show::EACH.to_vec(),
            (false, true) if self.json => Show::COMPILED.to_vec(),
            (false, _) => self.target.iter().copied().chain(arches.iter().map(|(form, _)| *form)).collect(),
        };
        shows.sort();
        shows.dedup();
        let mut wanted = Vec::new();
        for show in shows {
            let mut of_show: Vec<Option<String>> =
                arches.iter().filter(|(form, _)| *form == show).map(|(_, arch)| Some((*arch).clone())).collect();
            if of_show.is_empty() {
                of_show.push(show.default_arch().map(str::to_owned));
            }
            wanted.extend(of_show.into_iter().map(|arch| Wanted { show, arch, by_name: by_name(&show) }));
        }
        Ok(wanted)
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

/// Writes a text into `folder`, and for SPIR-V its module; the files that were written.
fn save_form(folder: &Path, stencil: Stencil, wanted: &Wanted, form: &Form) -> Result<Vec<PathBuf>, Failure> {
    let mut files = vec![folder.join(wanted.file_name(stencil.stem))];
    save(&files[0], form.text.as_bytes())?;
    if let Some(code @ Code::Words(_)) = wanted.show.target().map(|target| emit(target, stencil.compiled)) {
        let file = folder.join(format!("{}.{}", stencil.stem, Target::SpirV.extension()));
        save(&file, &code.bytes())?;
        files.push(file);
    }
    Ok(files)
}

/// One form of the kernel, or why it is not to be had.
fn form(wanted: &Wanted, stencil: Stencil) -> Result<Form, String> {
    let Stencil { source, compiled, text, .. } = stencil;
    let plain = |text: String| Ok(Form { text, tools: None, kernels: Vec::new() });
    match wanted.show {
        Show::Rust => plain(source.text(text)),
        Show::Ir => plain(ir::show(&compiled.kernel)),
        Show::Ptx | Show::Sass | Show::Gcn | Show::Pvc => {
            let made = machine::machine(wanted.show, wanted.arch.as_deref(), &compiled.kernel)?;
            Ok(Form { text: made.text, tools: Some(made.tools), kernels: made.kernels })
        }
        Show::Host | Show::Cuda | Show::Hip | Show::Opencl | Show::Spirv => {
            plain(emit(wanted.show.target().expect("these have emitters"), compiled).readable())
        }
        Show::All => unreachable!("`all` is taken apart before"),
    }
}

/// The name of a kernel's files: its own, numbered when a kernel of another module has it already.
fn free_stem(name: &str, taken: &mut Vec<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let stem = std::iter::once(name.to_owned()).chain(numbered).find(|stem| !taken.contains(stem));
    let stem = stem.expect("there are more numbers than kernels");
    taken.push(stem.clone());
    stem
}
