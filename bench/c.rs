//! The plain loops in C: compiled when they are needed, by the C compiler of this machine, and loaded into this process.

use std::env;
use std::ffi::c_void;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::ptr::NonNull;

use libloading::{Library, Symbol};
use polyhalo::Element;

use crate::cpus::Mask;

const SOURCES: [(&str, &str); 5] = [
    ("memory.c", include_str!("memory.c")),
    ("heat.c", include_str!("heat.c")),
    ("wave.c", include_str!("wave.c")),
    ("himeno.c", include_str!("himeno.c")),
    ("elastic.c", include_str!("elastic.c")),
];

/// How they are compiled.
pub const FLAGS: [&str; 4] = ["-O3", "-march=native", "-ffp-contract=off", "-fopenmp"];

type Memory = unsafe extern "C" fn(usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Fill = unsafe extern "C" fn(usize, usize, i32, *mut c_void, *const c_void);
type Step = unsafe extern "C" fn(usize, i32, *const f64, *const *mut c_void) -> f64;

/// The compiled loops.
pub struct Loops {
    library: Library,
    /// The first line of the compiler's version.
    pub compiler: String,
    /// The CPU of the calling thread while it is in C, as OpenMP would pin it.
    own_cpu: usize,
}

impl Loops {
    /// Compiles and loads them; files go to `folder`. To be called once, by the first thread and before others start.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        fs::create_dir_all(folder).map_err(text)?;
        let library = folder.join("plain.so");
        let (compiler, version) = compiler()?;
        let mut command = Command::new(&compiler);
        command.args(FLAGS).args(["-shared", "-fPIC", "-o"]).arg(&library);
        for (name, source) in SOURCES {
            let path = folder.join(name);
            fs::write(&path, source).map_err(|error| format!("{} can't be written: {error}", path.display()))?;
            command.arg(path);
        }
        let output = command.output().map_err(|error| format!("{compiler} can't be started: {error}"))?;
        if !output.status.success() {
            let log = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{compiler} {} doesn't compile the plain loops:\n{log}", FLAGS.join(" ")));
        }
        let mask = Mask::of_this_thread().map_err(text)?;
        // SAFETY: no other thread runs that could read the environment meanwhile.
        unsafe { env::set_var("OMP_PROC_BIND", "true") };
        // SAFETY: the library is ours, and loading it runs nothing but the start of OpenMP, which pins this thread.
        let library = unsafe { Library::new(&library) };
        mask.apply().map_err(text)?;
        let library = library.map_err(|error| format!("the compiled loops can't be loaded: {error}"))?;
        Ok(Self { library, compiler: version, own_cpu: mask.cpus()[0] })
    }

    fn symbol<T>(&self, name: &str) -> Symbol<'_, T> {
        // SAFETY: the types above are those of the functions in the sources.
        unsafe { self.library.get(name) }.expect("the sources define it")
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
        "no C compiler was found (tried {}): the plain C loops are compiled when this program runs. Install gcc, or name \
         a compiler that knows -fopenmp in the variable CC",
        candidates.join(", ")
    ))
}

/// Memory for the values of a field.
struct Array<'c> {
    code: &'c Loops,
    start: NonNull<c_void>,
    bytes: usize,
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by `plain_memory`, and nothing refers to it any more.
        unsafe { self.code.symbol::<Free>("plain_free")(self.start.as_ptr()) };
    }
}

/// A problem in C: a step, and arrays of n * n * n values (or n, for those along one axis).
pub struct Plain<'c> {
    code: &'c Loops,
    step: &'static str,
    n: usize,
    threads: i32,
    scalars: Vec<f64>,
    arrays: Vec<Array<'c>>,
    /// Two arrays that change places after each step.
    swapped: Option<(usize, usize)>,
    /// What the last step returned.
    pub result: f64,
}

impl<'c> Plain<'c> {
    /// A problem without arrays; `step` is the name of the function.
    pub fn new(code: &'c Loops, step: &'static str, n: usize, threads: usize, scalars: &[f64]) -> Self {
        let (scalars, threads) = (scalars.to_vec(), i32::try_from(threads).unwrap_or(i32::MAX));
        Self { code, step, n, threads, scalars, arrays: Vec::new(), swapped: None, result: 0.0 }
    }

    /// Adds an array with these values; `false` when there isn't enough memory.
    pub fn push<T: Element>(&mut self, values: &[T]) -> bool {
        let bytes = size_of_val(values);
        // SAFETY: any size may be asked for.
        let Some(start) = NonNull::new(unsafe { self.code.symbol::<Memory>("plain_memory")(bytes) }) else {
            return false;
        };
        let planes = if values.len() == self.n.pow(3) { self.n } else { 1 };
        let fill = self.code.symbol::<Fill>("plain_fill");
        // SAFETY: both hold so many planes of so many bytes, and the memory is new.
        let fill = || unsafe { fill(planes, bytes / planes, self.threads, start.as_ptr(), values.as_ptr().cast()) };
        self.code.pinned(fill);
        self.arrays.push(Array { code: self.code, start, bytes });
        true
    }

    /// Two arrays change places after each step.
    pub fn swap(&mut self, one: usize, other: usize) {
        self.swapped = Some((one, other));
    }

    /// Makes steps.
    pub fn run(&mut self, steps: u64) {
        let step = self.code.symbol::<Step>(&format!("{}_step", self.step));
        for _ in 0..steps {
            let arrays: Vec<_> = self.arrays.iter().map(|array| array.start.as_ptr()).collect();
            // SAFETY: the arrays are different memory, in the number, order and sizes that the function takes.
            self.result =
                self.code.pinned(|| unsafe { step(self.n, self.threads, self.scalars.as_ptr(), arrays.as_ptr()) });
            if let Some((one, other)) = self.swapped {
                self.arrays.swap(one, other);
            }
        }
    }

    /// The values of an array, which was made from values of that type.
    pub fn values<T: Element>(&self, array: usize) -> &[T] {
        let array = &self.arrays[array];
        // SAFETY: so many values were filled in, numbers have no invalid bits, and they change only through `&mut self`.
        unsafe { std::slice::from_raw_parts(array.start.as_ptr().cast(), array.bytes / size_of::<T>()) }
    }
}
