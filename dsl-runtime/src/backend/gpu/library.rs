//! Finds a vendor's driver library on this machine and takes its entry points; nothing is linked.
//!
//! A variable set to a file or folder is final: when that one can't be used, no other is taken in its place. Set to `off` it
//! says to do without the driver; empty is the same as unset.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::Library;
use polyhalo_codegen::offline::programs::{Environment, Named, loader_reason};

use super::driver::{Failure, Kind};

/// How one driver's library is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// What the driver is called in messages: `CUDA` or `HIP`.
    pub(super) driver: &'static str,
    /// The variable that names its file or folder.
    pub(super) variable: &'static str,
    /// File names, best first.
    pub(super) names: &'static [&'static str],
    /// Variables that name an installation, each with the folder in it.
    pub(super) homes: &'static [(&'static str, &'static str)],
    /// Folders that hold it where the loader doesn't look.
    pub(super) folders: &'static [&'static str],
    /// Folders inside a named folder.
    pub(super) inside: &'static [&'static str],
    /// Where it comes from: a clause for messages.
    pub(super) origin: &'static str,
}

/// Files to try, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidates {
    /// What the variable names.
    Named(Vec<PathBuf>),
    /// The usual places; a bare name is looked for by the loader.
    Usual(Vec<PathBuf>),
}

impl Search {
    /// The files to try.
    pub(super) fn candidates(&self, environment: Environment) -> Result<Candidates, String> {
        let (driver, variable) = (self.driver, self.variable);
        if cfg!(all(unix, target_feature = "crt-static")) {
            return Err(format!("a statically linked program can't load {driver} (build it without +crt-static)"));
        }
        match Named::read(environment, variable) {
            Named::Off => Err(format!("{variable} turns {driver} off")),
            Named::At(folder) if folder.is_dir() => {
                let files = self.in_folders(self.inside.iter().map(|inside| folder.join(inside)));
                if files.is_empty() {
                    let (folder, name) = (folder.display(), self.names[0]);
                    return Err(format!("{variable} names the folder {folder}, which holds no {name}"));
                }
                Ok(Candidates::Named(files))
            }
            // The loader looks for a bare name in its own folders: what is named here is a file.
            Named::At(file) => match file.canonicalize() {
                Ok(file) => Ok(Candidates::Named(vec![file])),
                Err(_) if file.components().count() == 1 => Ok(Candidates::Named(vec![file])),
                Err(cause) => Err(format!("{variable} names {}, which can't be read: {cause}", file.display())),
            },
            Named::Unset => {
                let home = |&(home, inside): &(&str, &str)| {
                    let folder = environment(home).filter(|folder| !folder.is_empty())?;
                    Some(Path::new(&folder).join(inside))
                };
                let mut files = self.in_folders(self.homes.iter().filter_map(home));
                files.extend(self.names.iter().map(PathBuf::from));
                files.extend(self.in_folders(self.folders.iter().map(PathBuf::from)));
                Ok(Candidates::Usual(files))
            }
        }
    }

    /// The files of those names in `folders`.
    fn in_folders(&self, folders: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
        let files = folders.flat_map(|folder| self.names.iter().map(move |name| folder.join(name)));
        files.filter(|file| file.exists()).collect()
    }

    /// What `take` makes of the first candidate that will do, or one reason why none does.
    pub(super) fn first<T>(
        &self,
        candidates: &Candidates,
        mut take: impl FnMut(&Path) -> Result<T, String>,
    ) -> Result<T, String> {
        let (Candidates::Named(files) | Candidates::Usual(files)) = candidates;
        let mut refused = Vec::new();
        for file in files {
            match take(file) {
                Ok(taken) => return Ok(taken),
                // What the loader doesn't know under a bare name is simply not there.
                Err(reason) if is_absent(file, &reason) => {}
                Err(reason) => refused.push(format!("{}: {reason}", file.display())),
            }
        }
        let Self { driver, variable, names, origin, .. } = self;
        Err(match candidates {
            Candidates::Named(files) if refused.is_empty() => {
                let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                format!("{variable} names {}, which is not there", files.join(", "))
            }
            Candidates::Named(_) => format!("{variable} can't be used: {}", refused.join("; ")),
            Candidates::Usual(_) if refused.is_empty() => {
                format!("no {driver} driver was found: {} {origin} ({variable} may name its file)", names[0])
            }
            Candidates::Usual(_) => format!("no {driver} driver can be used: {}", refused.join("; ")),
        })
    }
}

/// Whether `reason` says that the loader knows no file of that bare name.
fn is_absent(file: &Path, reason: &str) -> bool {
    let missing = format!("{}: cannot open shared object file", file.display());
    file.components().count() == 1 && reason.starts_with(&missing)
}

/// A library, which stays loaded: drivers start threads and keep state, and unloading them again is what breaks.
pub(super) fn load(file: &Path) -> Result<&'static Library, String> {
    // SAFETY: loading a vendor's driver library runs its initialisers, which is what every user of the driver does first.
    let library = unsafe { Library::new(file) }.map_err(loader_reason)?;
    Ok(Box::leak(Box::new(library)))
}

/// The address of an entry point.
pub(super) fn address(library: &Library, name: &str) -> Option<*const c_void> {
    // SAFETY: the type is that of an address, which nobody follows before it has its own type.
    let symbol = unsafe { library.get::<*const c_void>(name) }.ok()?;
    Some(*symbol).filter(|address| !address.is_null())
}

/// Drivers by the files that they came from. What was found is kept for the life of the process, a failure isn't: a long-lived
/// process sees a driver that is installed later.
pub(super) struct Found<T: 'static>(Mutex<BTreeMap<PathBuf, &'static T>>);

impl<T> Found<T> {
    pub(super) const fn nothing() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The driver of `file`, made once.
    pub(super) fn or(&self, file: &Path, make: impl FnOnce() -> Result<T, String>) -> Result<&'static T, String> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&driver) = found.get(file) {
            return Ok(driver);
        }
        let driver: &'static T = Box::leak(Box::new(make()?));
        found.insert(file.to_path_buf(), driver);
        Ok(driver)
    }
}

/// A call that the driver can't be asked for.
pub(super) fn unasked(call: &'static str, kind: Kind, message: String) -> Failure {
    Failure { call, code: 0, message, kind }
}

/// A call of an entry point that the library lacks.
pub(super) fn lacking(call: &'static str) -> Failure {
    unasked(call, Kind::Unsupported, format!("the driver's library lacks {call}"))
}

/// Makes `Entries`, a table of a library's entry points, and a method for each that calls it.
///
/// `core` are those without which the driver is of no use, `optional` and `newer` those whose absence is a failure of the call.
/// All give a code, 0 for success, which the method `judged` makes a failure of; `texts` give a text for a code. Results are
/// plain integers, as newer drivers give codes that no list knows.
macro_rules! entry_points {
    (
        core { $(fn $core:ident($($core_name:ident: $core_type:ty),*);)* }
        optional { $(fn $optional:ident($($optional_name:ident: $optional_type:ty),*);)* }
        newer { $(fn $newer:ident($($newer_name:ident: $newer_type:ty),*);)* }
        texts { $(fn $text:ident;)* }
    ) => {
        /// The entry points of the driver's library.
        #[expect(non_snake_case, reason = "the vendor's names")]
        pub(super) struct Entries {
            $(pub(super) $core: unsafe extern "C" fn($($core_type),*) -> c_int,)*
            $(pub(super) $optional: Option<unsafe extern "C" fn($($optional_type),*) -> c_int>,)*
            $(pub(super) $newer: Option<unsafe extern "C" fn($($newer_type),*) -> c_int>,)*
            $($text: Option<unsafe extern "C" fn(c_int) -> *const c_char>,)*
        }

        #[expect(non_snake_case, clippy::too_many_arguments, reason = "the vendor's names and calls")]
        #[allow(dead_code, reason = "some entry points are called through the table")]
        impl Entries {
            /// The table, or the name of an entry point that it can't do without.
            ///
            /// # Safety
            /// `find` gives addresses of the vendor's functions of those names.
            pub(super) unsafe fn fill(find: &dyn Fn(&str) -> Option<*const c_void>) -> Result<Self, &'static str> {
                // SAFETY: the functions have the types that the vendor documents for their names, which are those of the
                // table's fields, and an address is not null.
                unsafe {
                    Ok(Self {
                        $($core: std::mem::transmute::<*const c_void, unsafe extern "C" fn($($core_type),*) -> c_int>(
                            find(stringify!($core)).ok_or(stringify!($core))?,
                        ),)*
                        $($optional: find(stringify!($optional)).map(|address| {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($optional_type),*) -> c_int>(address)
                        }),)*
                        $($newer: find(stringify!($newer)).map(|address| {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($newer_type),*) -> c_int>(address)
                        }),)*
                        $($text: find(stringify!($text)).map(|address| {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn(c_int) -> *const c_char>(address)
                        }),)*
                    })
                }
            }

            $(pub(super) unsafe fn $core(&self, $($core_name: $core_type),*) -> Called<()> {
                // SAFETY: the caller keeps what the vendor asks of callers.
                self.judged(stringify!($core), unsafe { (self.$core)($($core_name),*) })
            })*

            $(pub(super) unsafe fn $optional(&self, $($optional_name: $optional_type),*) -> Called<()> {
                let call = self.$optional.ok_or_else(|| lacking(stringify!($optional)))?;
                // SAFETY: the caller keeps what the vendor asks of callers.
                self.judged(stringify!($optional), unsafe { call($($optional_name),*) })
            })*

            $(pub(super) unsafe fn $newer(&self, $($newer_name: $newer_type),*) -> Called<()> {
                let call = self.$newer.ok_or_else(|| lacking(stringify!($newer)))?;
                // SAFETY: the caller keeps what the vendor asks of callers.
                self.judged(stringify!($newer), unsafe { call($($newer_name),*) })
            })*
        }

        impl std::fmt::Debug for Entries {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("Entries")
            }
        }
    };
}
pub(super) use entry_points;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SEARCH: Search = Search {
        driver: "SAW",
        variable: "POLYHALO_SAW",
        names: &["libsaw.so.2", "libsaw.so"],
        homes: &[("SAW_HOME", "lib")],
        folders: &["/nowhere/saw"],
        inside: &["", "lib64"],
        origin: "comes with the saw",
    };

    fn candidates(variables: &[(&str, &Path)]) -> Result<Candidates, String> {
        SEARCH.candidates(&|wanted| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.as_os_str().to_os_string())
        })
    }

    /// A folder that is removed with all that is in it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("polyhalo-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("lib64")).unwrap();
            fs::create_dir_all(path.join("lib")).unwrap();
            Self(path.canonicalize().unwrap())
        }

        fn file(&self, name: &str) -> PathBuf {
            fs::write(self.0.join(name), "not a library").unwrap();
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_named_file_or_folder_is_final() {
        let folder = Folder::new("named");
        let home = ("SAW_HOME", folder.0.as_path());
        let empty = candidates(&[("POLYHALO_SAW", &folder.0), home]).unwrap_err();
        assert!(
            empty.starts_with("POLYHALO_SAW names the folder ") && empty.ends_with("holds no libsaw.so.2"),
            "{empty}"
        );
        let [better, other] = ["lib64/libsaw.so.2", "libsaw.so"].map(|name| folder.file(name));
        let named = |path: &Path| candidates(&[("POLYHALO_SAW", path), home]);
        assert_eq!(named(&folder.0), Ok(Candidates::Named(vec![other.clone(), better])));
        assert_eq!(named(&other), Ok(Candidates::Named(vec![other])));
        assert_eq!(named(Path::new("libother.so")), Ok(Candidates::Named(vec!["libother.so".into()])));
        let missing = named(&folder.0.join("nothing")).unwrap_err();
        assert!(missing.contains("nothing, which can't be read: "), "{missing}");
        assert_eq!(named(Path::new("off")).unwrap_err(), "POLYHALO_SAW turns SAW off");
    }

    #[test]
    fn installations_come_before_the_loaders_search() {
        let folder = Folder::new("usual");
        let bare = ["libsaw.so.2", "libsaw.so"].map(PathBuf::from);
        assert_eq!(candidates(&[]), Ok(Candidates::Usual(bare.to_vec())));
        let [installed, elsewhere] = ["lib/libsaw.so.2", "libsaw.so.2"].map(|name| folder.file(name));
        let all = [&[installed][..], &bare].concat();
        assert!(elsewhere.exists());
        assert_eq!(candidates(&[("SAW_HOME", &folder.0), ("POLYHALO_SAW", Path::new(""))]), Ok(Candidates::Usual(all)));
    }

    #[test]
    fn what_is_not_there_and_what_will_not_do_are_told_apart() {
        let first = |candidates: Candidates| SEARCH.first(&candidates, |file| load(file).map(|_| ())).unwrap_err();
        let names = || vec!["libpolyhalo-nowhere.so.1".into(), "libpolyhalo-nowhere.so".into()];
        let reason = first(Candidates::Usual(names()));
        assert_eq!(reason, "no SAW driver was found: libsaw.so.2 comes with the saw (POLYHALO_SAW may name its file)");
        assert!(first(Candidates::Named(names())).ends_with("libpolyhalo-nowhere.so, which is not there"));
        let folder = Folder::new("broken");
        let broken = folder.file("libsaw.so.2");
        let reason = first(Candidates::Usual(vec![broken.clone(), "libpolyhalo-nowhere.so".into()]));
        assert!(reason.starts_with("no SAW driver can be used: ") && reason.contains("libsaw.so.2: "), "{reason}");
        assert!(first(Candidates::Named(vec![broken])).starts_with("POLYHALO_SAW can't be used: "));
    }

    #[test]
    fn a_driver_is_made_once_and_a_failure_is_not_kept() {
        static FOUND: Found<u32> = Found::nothing();
        assert_eq!(FOUND.or(Path::new("a"), || Err("not yet".into())), Err("not yet".into()));
        assert_eq!(FOUND.or(Path::new("a"), || Ok(1)), Ok(&1));
        assert_eq!(FOUND.or(Path::new("a"), || unreachable!("it is there")), Ok(&1));
        assert_eq!(FOUND.or(Path::new("b"), || Ok(2)), Ok(&2));
    }
}
