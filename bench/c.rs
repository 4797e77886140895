//! The heat step in C: compiled when it is needed, by the C compiler of this machine, and loaded into this process.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::ptr::NonNull;

use libloading::{Library, Symbol};

use crate::cpus::Mask;

const SOURCE: &str = include_str!("heat.c");

/// How it is compiled.
pub const FLAGS: [&str; 4] = ["-O3", "-march=native", "-ffp-contract=off", "-fopenmp"];

type Array = unsafe extern "C" fn(usize) -> *mut f64;
type Free = unsafe extern "C" fn(*mut f64);
type Fill = unsafe extern "C" fn(usize, usize, i32, *mut f64, *const f64);
type Step = unsafe extern "C" fn(usize, i32, f64, *const f64, *const f64, *const f64, *mut f64);

/// The compiled loop.
pub struct Loop {
    library: Library,
    /// The first line of the compiler's version.
    pub compiler: String,
    /// The CPU of the calling thread while it is in C, as OpenMP would pin it.
    own_cpu: usize,
}

impl Loop {
    /// Compiles and loads it; files go to `folder`. To be called once, by the first thread and before others start.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        fs::create_dir_all(folder).map_err(text)?;
        let (source, library) = (folder.join("heat.c"), folder.join("heat.so"));
        fs::write(&source, SOURCE).map_err(|error| format!("{} can't be written: {error}", source.display()))?;
        let (compiler, version) = compiler()?;
        let mut command = Command::new(&compiler);
        command.args(FLAGS).args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        let output = command.output().map_err(|error| format!("{compiler} can't be started: {error}"))?;
        if !output.status.success() {
            let log = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{compiler} {} doesn't compile heat.c:\n{log}", FLAGS.join(" ")));
        }
        let mask = Mask::of_this_thread().map_err(text)?;
        // SAFETY: no other thread runs that could read the environment meanwhile.
        unsafe { env::set_var("OMP_PROC_BIND", "true") };
        // SAFETY: the library is ours, and loading it runs nothing but the start of OpenMP, which pins this thread.
        let library = unsafe { Library::new(&library) };
        mask.apply().map_err(text)?;
        let library = library.map_err(|error| format!("the compiled loop can't be loaded: {error}"))?;
        Ok(Self { library, compiler: version, own_cpu: mask.cpus()[0] })
    }

    fn symbol<T>(&self, name: &str) -> Symbol<'_, T> {
        // SAFETY: the types above are those of the functions in `heat.c`.
        unsafe { self.library.get(name) }.expect("the source defines it")
    }

    /// Calls `work` while this thread is pinned like those of OpenMP.
    fn pinned<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = Mask::of_this_thread();
        // A thread that can't be pinned runs where it may.
        let _ = Mask::only(self.own_cpu).apply();
        let result = work();
        let _ = before.and_then(|before| before.apply());
        result
    }

    /// A problem with `n` points along each axis; the fields hold nothing yet. `None` when there isn't enough memory.
    pub fn heat(&self, n: usize, threads: usize, beta: f64) -> Option<Heat<'_>> {
        let threads = i32::try_from(threads).ok()?;
        let field = || Field::new(self, n * n * n);
        Some(Heat { code: self, n, threads, beta, fields: [field()?, field()?, field()?, field()?] })
    }
}

/// The compiler to use and its version: the one that the variable `CC` names, else the first one that is there.
fn compiler() -> Result<(String, String), String> {
    let named = env::var("CC").ok();
    let candidates: Vec<&str> = named.as_deref().map_or_else(|| vec!["gcc", "cc", "clang"], |name| vec![name]);
    for candidate in &candidates {
        let Ok(output) = Command::new(candidate).arg("--version").output() else { continue };
        let version = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
        return Ok(((*candidate).to_owned(), version));
    }
    Err(format!(
        "no C compiler was found (tried {}): the plain C loop is compiled when this program runs. Install gcc, or name \
         a compiler that knows -fopenmp in the variable CC",
        candidates.join(", ")
    ))
}

/// Memory for the values of a field.
struct Field<'c> {
    code: &'c Loop,
    start: NonNull<f64>,
    count: usize,
}

impl<'c> Field<'c> {
    fn new(code: &'c Loop, count: usize) -> Option<Self> {
        // SAFETY: any count may be asked for.
        let start = unsafe { code.symbol::<Array>("heat_array")(count) };
        Some(Self { code, start: NonNull::new(start)?, count })
    }
}

impl Drop for Field<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by `heat_array`, and nothing refers to it any more.
        unsafe { self.code.symbol::<Free>("heat_free")(self.start.as_ptr()) };
    }
}

/// A heat problem in C.
pub struct Heat<'c> {
    code: &'c Loop,
    n: usize,
    threads: i32,
    beta: f64,
    /// u, f, kappa and the next u.
    fields: [Field<'c>; 4],
}

impl Heat<'_> {
    /// Sets u (both time levels), f or kappa, which are numbered in this order.
    ///
    /// # Panics
    /// When there are not n * n * n values.
    pub fn fill(&mut self, field: usize, values: &[f64]) {
        let targets: &[usize] = if field == 0 { &[0, 3] } else { &[field] };
        for &target in targets {
            let target = &self.fields[target];
            assert_eq!(target.count, values.len(), "a value for each point is needed");
            let fill = self.code.symbol::<Fill>("heat_fill");
            // SAFETY: both hold n planes of n * n values, and the values are borrowed, so they aren't the field's.
            let fill = || unsafe {
                fill(self.n, self.n * self.n, self.threads, target.start.as_ptr(), values.as_ptr());
            };
            self.code.pinned(fill);
        }
    }

    /// Makes steps. All fields must have been filled.
    pub fn run(&mut self, steps: u64) {
        let step = self.code.symbol::<Step>("heat_step");
        for _ in 0..steps {
            let [u, f, kappa, next] = self.fields.each_ref().map(|field| field.start.as_ptr());
            // SAFETY: the four fields are different memory, each with n * n * n values.
            self.code.pinned(|| unsafe { step(self.n, self.threads, self.beta, u, f, kappa, next) });
            self.fields.swap(0, 3);
        }
    }

    /// The values of u. All fields must have been filled.
    pub fn solution(&self) -> &[f64] {
        let u = &self.fields[0];
        // SAFETY: that many values were filled in, and they change only through `&mut self`.
        unsafe { std::slice::from_raw_parts(u.start.as_ptr(), u.count) }
    }
}
