//! Keeps what the compilers built on disk, so that a source is compiled once per machine and not once per build.
//!
//! An entry is a file named after its [`Key`]; it appears whole (written beside, then renamed) and is used only if its
//! length and checksum are right. Without a folder that can be written everything still works, only slower.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Outcome;
use super::programs::{Environment, Named, process_environment};

/// The variable that names the folder; `off` says to do without.
pub const VARIABLE: &str = "POLYHALO_CACHE";

/// The first bytes of an entry. The number changes with the layout.
const MAGIC: &[u8; 16] = b"polyhalo-cache-1";
/// Magic, key, length and checksum of what follows.
const HEADER_BYTES: usize = 16 + 16 + 8 + 16;

/// A folder of finished code, or none.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Result<PathBuf, String>,
}

impl Cache {
    /// The cache of this process: the folder of `POLYHALO_CACHE`, else `polyhalo-cache` in cargo's target folder, which is
    /// found from `out_dir` (the `OUT_DIR` of a build script in it), else a folder of the user's.
    pub fn open(out_dir: Option<&Path>) -> Cache {
        Cache::open_in(out_dir, &process_environment)
    }

    /// As [`Cache::open`] with the variables of `environment`.
    pub fn open_in(out_dir: Option<&Path>, environment: Environment) -> Cache {
        let candidates = match Named::read(environment, VARIABLE) {
            Named::Off => return Cache::off(format!("{VARIABLE} turns the cache off")),
            Named::At(folder) => vec![folder],
            Named::Unset => {
                let target = out_dir.and_then(target_folder).map(|target| target.join("polyhalo-cache"));
                target.into_iter().chain(users_folder(environment)).collect()
            }
        };
        let mut refused = Vec::new();
        for folder in candidates {
            match fs::create_dir_all(&folder) {
                Ok(()) => return Cache { folder: Ok(folder) },
                Err(cause) => refused.push(format!("{} can't be made: {cause}", folder.display())),
            }
        }
        match refused.is_empty() {
            true => Cache::off("there is no target folder and no home to keep a cache in".into()),
            false => Cache::off(refused.join("; ")),
        }
    }

    /// No cache, for the reason given.
    pub fn off(reason: String) -> Cache {
        Cache { folder: Err(reason) }
    }

    /// Where entries are kept, or why none are.
    pub fn folder(&self) -> Result<&Path, &str> {
        self.folder.as_deref().map_err(String::as_str)
    }

    /// What is kept under `key`, or what `build` makes, which is then kept. Only what was built is kept: a tool that is
    /// installed later, or a source that is mended, is asked anew. A folder that can't be written is no error.
    pub fn built(&self, key: &Key, build: impl FnOnce() -> Outcome<Vec<u8>>) -> Outcome<Vec<u8>> {
        self.kept_or_built(key, build).map(|(product, _)| product)
    }

    /// As [`built`](Self::built), with where the product comes from.
    pub fn kept_or_built(&self, key: &Key, build: impl FnOnce() -> Outcome<Vec<u8>>) -> Outcome<(Vec<u8>, Provenance)> {
        if let Some(kept) = self.get(key) {
            return Outcome::Built((kept, Provenance::Cache));
        }
        let outcome = build();
        if let Outcome::Built(product) = &outcome {
            // The product is in hand; keeping it is a convenience.
            let _ = self.put(key, product);
        }
        outcome.map(|product| (product, Provenance::Compiler))
    }

    /// What is kept under `key`. A file that is damaged or cut short counts as nothing.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        unpack(key, fs::read(self.entry(key)?).ok()?)
    }

    /// Keeps `product` under `key`; readers see the old entry or the whole new one.
    pub fn put(&self, key: &Key, product: &[u8]) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(entry) = self.entry(key) else {
            return Ok(());
        };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let written = entry.with_extension(format!("{}-{count}.tmp", std::process::id()));
        let kept = write(&written, key, product).and_then(|()| fs::rename(&written, &entry));
        if kept.is_err() {
            // It may not even exist.
            let _ = fs::remove_file(&written);
        }
        kept
    }

    fn entry(&self, key: &Key) -> Option<PathBuf> {
        self.folder().ok().map(|folder| folder.join(key.to_string()))
    }
}

/// Where a product comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// It was kept from an earlier build.
    Cache,
    /// It was built now.
    Compiler,
}

/// The name of an entry: everything that its bytes depend on, in 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u128);

impl Key {
    /// The key of these parts in this order: kind, compiler and version (but not where it lies), options, source.
    pub fn of(parts: &[&str]) -> Key {
        // Each part is led by its length, so that moving text from one part to the next changes the key.
        let hash = parts.iter().fold(FNV_START, |hash, part| {
            let hash = fnv1a(hash, &(part.len() as u64).to_le_bytes());
            fnv1a(hash, part.as_bytes())
        });
        Key(hash)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

// FNV-1a in 128 bits. The standard library's hasher may change from release to release; this one is written down.
const FNV_START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

fn fnv1a(start: u128, bytes: &[u8]) -> u128 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(FNV_PRIME))
}

fn write(path: &Path, key: &Key, product: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(&header(key, product))?;
    file.write_all(product)
}

fn header(key: &Key, product: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..16].copy_from_slice(MAGIC);
    header[16..32].copy_from_slice(&key.0.to_le_bytes());
    header[32..40].copy_from_slice(&(product.len() as u64).to_le_bytes());
    header[40..].copy_from_slice(&fnv1a(FNV_START, product).to_le_bytes());
    header
}

fn unpack(key: &Key, mut entry: Vec<u8>) -> Option<Vec<u8>> {
    let product = entry.get(HEADER_BYTES..)?;
    let right = entry[..HEADER_BYTES] == header(key, product);
    right.then(|| entry.split_off(HEADER_BYTES))
}

/// Cargo's target folder: the nearest ancestor of `out_dir` with cargo's mark, else by cargo's layout
/// `<target>/<profile>/build/<package>/out`.
fn target_folder(out_dir: &Path) -> Option<PathBuf> {
    let marked = out_dir.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    let by_layout = || {
        let build = out_dir.ancestors().nth(2)?;
        build.ends_with("build").then(|| out_dir.ancestors().nth(4)).flatten()
    };
    marked.or_else(by_layout).map(Path::to_path_buf)
}

fn users_folder(environment: Environment) -> Option<PathBuf> {
    let absolute = |variable| environment(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    caches.map(|caches| caches.join("polyhalo"))
}

#[cfg(test)]
mod tests {
    use super::super::private::Folder;
    use super::*;
    use std::cell::Cell;
    use std::ffi::OsString;

    fn open(variables: &[(&str, &Path)], out_dir: Option<&Path>) -> Cache {
        Cache::open_in(out_dir, &|wanted| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.as_os_str().to_os_string())
        })
    }

    fn cache_in(folder: &Folder) -> Cache {
        open(&[(VARIABLE, folder.path())], None)
    }

    fn entries(folder: &Folder) -> Vec<OsString> {
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the algorithm's published test vectors.
        assert_eq!(fnv1a(FNV_START, b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(fnv1a(FNV_START, b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
        assert_eq!(fnv1a(FNV_START, b"foobar"), 0x343e1662793c64bf6f0d3597ba446f18);
    }

    #[test]
    fn a_key_depends_on_every_part_and_on_where_it_ends() {
        let keys = [
            Key::of(&["ptx", "12.9", "source"]),
            Key::of(&["ptx", "12.", "9source"]),
            Key::of(&["ptx", "12.9source"]),
            Key::of(&["ptx", "12.9", "source", ""]),
            Key::of(&["12.9", "ptx", "source"]),
            Key::of(&[]),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{index}");
        }
        // Written down: a key must not change from release to release.
        assert_eq!(Key::of(&["ptx", "12.9"]).to_string(), "f6d167c6bc43bccf0a1f079f3e320e24");
    }

    #[test]
    fn what_is_built_once_is_not_built_again() {
        let folder = Folder::new().unwrap();
        let (cache, key, builds) = (cache_in(&folder), Key::of(&["a"]), Cell::new(0));
        let build = || {
            builds.set(builds.get() + 1);
            Outcome::Built(b"code".to_vec())
        };
        for _ in 0..3 {
            assert_eq!(cache.built(&key, build), Outcome::Built(b"code".to_vec()));
        }
        assert_eq!(builds.get(), 1);
        cache.built(&Key::of(&["b"]), build);
        assert_eq!(builds.get(), 2);
        // An empty product is a product.
        cache.put(&Key::of(&["c"]), b"").unwrap();
        assert_eq!(cache.get(&Key::of(&["c"])), Some(Vec::new()));
    }

    #[test]
    fn failures_are_not_kept() {
        let folder = Folder::new().unwrap();
        let (cache, key) = (cache_in(&folder), Key::of(&["a"]));
        for failure in [Outcome::Absent("why".into()), Outcome::Rejected("log".into())] {
            assert_eq!(cache.built(&key, || failure.clone()), failure);
        }
        assert!(entries(&folder).is_empty());
        assert_eq!(cache.built(&key, || Outcome::Built(vec![1])), Outcome::Built(vec![1]));
    }

    #[test]
    fn a_damaged_entry_is_built_anew_wherever_the_damage_is() {
        let folder = Folder::new().unwrap();
        let (cache, key) = (cache_in(&folder), Key::of(&["a"]));
        cache.put(&key, b"the code").unwrap();
        let file = folder.path().join(key.to_string());
        let whole = fs::read(&file).unwrap();

        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|place| {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            bytes
        }));
        damaged.push([whole.as_slice(), b"!"].concat());
        for bytes in damaged {
            fs::write(&file, &bytes).unwrap();
            assert_eq!(cache.get(&key), None, "{bytes:?}");
            assert_eq!(
                cache.built(&key, || Outcome::Built(b"the code".to_vec())),
                Outcome::Built(b"the code".to_vec())
            );
            assert_eq!(fs::read(&file).unwrap(), whole);
        }
        // An entry under another's name.
        fs::rename(&file, folder.path().join(Key::of(&["b"]).to_string())).unwrap();
        assert_eq!(cache.get(&Key::of(&["b"])), None);
        // Something that is no file at all.
        fs::create_dir(&file).unwrap();
        assert_eq!(cache.built(&key, || Outcome::Built(vec![1])), Outcome::Built(vec![1]));
        assert!(cache.put(&key, &[1]).is_err());
        assert!(entries(&folder).iter().all(|name| !name.to_string_lossy().ends_with(".tmp")));
    }

    #[test]
    fn a_folder_that_can_not_be_written_only_means_no_cache() {
        let folder = Folder::new().unwrap();
        folder.write("file", b"").unwrap();
        // Below a file there is no folder for anyone, not even for root.
        let cache = open(&[(VARIABLE, &folder.path().join("file/cache"))], None);
        assert!(cache.folder().unwrap_err().contains("can't be made"), "{cache:?}");
        let key = Key::of(&["a"]);
        for product in [1, 2] {
            assert_eq!(cache.built(&key, || Outcome::Built(vec![product])), Outcome::Built(vec![product]));
        }
        // A folder that goes away while it is in use.
        let inner = folder.path().join("inner");
        let cache = open(&[(VARIABLE, &inner)], None);
        assert_eq!(cache.folder(), Ok(inner.as_path()));
        fs::remove_dir(&inner).unwrap();
        assert_eq!(cache.built(&key, || Outcome::Built(vec![3])), Outcome::Built(vec![3]));
        assert!(cache.put(&key, &[3]).is_err());
    }

    #[test]
    fn many_writers_leave_one_whole_entry() {
        let folder = Folder::new().unwrap();
        let (cache, key) = (cache_in(&folder), Key::of(&["a"]));
        let product = |writer: u8| vec![writer; 50_000];
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (cache, key) = (&cache, &key);
                scope.spawn(move || {
                    for _ in 0..25 {
                        cache.put(key, &product(writer)).unwrap();
                        let seen = cache.get(key).expect("a reader saw a half-written entry");
                        assert!(seen.len() == 50_000 && seen.iter().all(|byte| *byte == seen[0]));
                    }
                });
            }
        });
        assert_eq!(entries(&folder), [OsString::from(key.to_string())]);
    }

    #[test]
    fn the_folder_is_the_variable_s_then_the_target_s_then_the_user_s() {
        let root = Folder::new().unwrap();
        let at = |path: &str| root.path().join(path);
        let out_dir = at("target/debug/build/macros-0123/out");
        fs::create_dir_all(&out_dir).unwrap();
        let check = |variables: &[(&str, &Path)], out_dir: Option<&Path>, expected: &str| {
            assert_eq!(open(variables, out_dir).folder(), Ok(at(expected).as_path()));
        };
        let (own, home, caches) = (at("own"), at("home"), at("caches"));
        let all = [(VARIABLE, own.as_path()), ("XDG_CACHE_HOME", &caches), ("HOME", &home)];
        check(&all, Some(&out_dir), "own");
        check(&all[1..], Some(&out_dir), "target/polyhalo-cache");
        check(&all[1..], None, "caches/polyhalo");
        check(&all[2..], None, "home/.cache/polyhalo");
        check(&[(VARIABLE, Path::new("")), ("HOME", &home)], None, "home/.cache/polyhalo");
        check(&[("XDG_CACHE_HOME", Path::new("relative")), ("HOME", &home)], None, "home/.cache/polyhalo");
        // Cargo's mark counts more than the layout: with --target there is one folder more.
        let out_dir = at("marked/triple/debug/build/macros-0123/out");
        fs::create_dir_all(&out_dir).unwrap();
        fs::write(at("marked/CACHEDIR.TAG"), "").unwrap();
        check(&[], Some(&out_dir), "marked/polyhalo-cache");
        // No sign of cargo.
        check(&[("HOME", &home)], Some(&at("elsewhere")), "home/.cache/polyhalo");

        assert_eq!(
            open(&[(VARIABLE, Path::new("off")), ("HOME", &home)], None).folder(),
            Err("POLYHALO_CACHE turns the cache off")
        );
        assert!(open(&[], None).folder().unwrap_err().contains("no home"));
    }
}
