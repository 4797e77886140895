//! A folder of our own for a tool's input and output files; it is gone when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// An empty folder that nobody else uses, removed with all that is in it when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new folder among the system's temporary files.
    pub fn new() -> Result<Folder, String> {
        let base = std::env::temp_dir();
        Folder::below(&base)
            .map_err(|cause| format!("no temporary folder could be made in {}: {cause}", base.display()))
    }

    fn below(base: &Path) -> io::Result<Folder> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("polyhalo-{}-{count}", std::process::id()));
            let mut builder = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            match builder.create(&path) {
                Ok(()) => return Ok(Folder(path)),
                // Left over from a process that had our number.
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(cause),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `program`, to be run inside the folder with its own temporary files there too, so that it can name its files without
    /// a path and no path reaches its output.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.0).env("TMPDIR", &self.0);
        command
    }

    /// Puts a file into the folder.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.0.join(name);
        fs::write(&path, bytes).map_err(|cause| format!("{} could not be written: {cause}", path.display()))
    }

    /// The bytes of a file that a tool left in the folder.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        fs::read(self.0.join(name)).map_err(|cause| format!("the tool left no readable {name}: {cause}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing can be done about a file that will not go.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_distinct_and_vanish() {
        let (first, second) = (Folder::new().unwrap(), Folder::new().unwrap());
        assert_ne!(first.path(), second.path());
        first.write("a", b"bytes").unwrap();
        assert_eq!(first.read("a").unwrap(), b"bytes");
        assert!(second.read("a").is_err());
        let gone = first.path().to_path_buf();
        drop(first);
        assert!(!gone.exists() && second.path().exists());
    }

    #[test]
    fn a_folder_left_over_is_passed_by() {
        let base = Folder::new().unwrap();
        let first = Folder::below(base.path()).unwrap();
        let number = first.path().to_str().unwrap().rsplit('-').next().unwrap().parse::<u64>().unwrap();
        // Other tests count too, so lay obstacles well ahead.
        for ahead in 1..50 {
            fs::create_dir(base.path().join(format!("polyhalo-{}-{}", std::process::id(), number + ahead))).unwrap();
        }
        let next = Folder::below(base.path()).unwrap();
        assert!(fs::read_dir(next.path()).unwrap().next().is_none(), "{} is not new", next.path().display());
        assert_ne!(first.path(), next.path());
    }

    #[test]
    fn a_missing_base_is_an_error() {
        assert_eq!(Folder::below(Path::new("/no/such/base")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
