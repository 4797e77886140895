//! Files that are either complete or not there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Writes a file beside `path` and gives it that name when it is complete; an older file stays as it is until then.
/// A link is followed, and what is no regular file (a pipe, a device) is written to as it is.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let failed = |error: io::Error| Error::Write { path: path.into(), reason: error.to_string() };
    let into = |file: File, write: &mut dyn FnMut(&mut BufWriter<File>) -> io::Result<()>| {
        let mut writer = BufWriter::new(file);
        write(&mut writer)?;
        writer.flush()
    };
    let mut write = Some(write);
    let mut write = |writer: &mut BufWriter<File>| write.take().map_or(Ok(()), |write| write(writer));
    // The target of a link exists or not; only one that does can be something else than a file.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    if fs::metadata(&target).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return OpenOptions::new().write(true).open(&target).and_then(|file| into(file, &mut write)).map_err(failed);
    }
    let path = target.as_path();
    let unfinished = beside(path).map_err(failed)?;
    let written = File::create(&unfinished).and_then(|file| {
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        let kept = file.try_clone()?;
        into(file, &mut write)?;
        kept.sync_all()
    });
    written.and_then(|()| fs::rename(&unfinished, path)).map_err(|error| {
        // The first failure is the one to report; a file that can't be removed either is a small remainder.
        let _ = fs::remove_file(&unfinished);
        failed(error)
    })
}

/// An error if [`replace`] couldn't write a file there, as far as that can be told without writing one.
pub(crate) fn try_place(path: &Path) -> Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let tried = match fs::metadata(&target) {
        Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(found) if !found.is_file() => OpenOptions::new().write(true).open(&target).map(drop),
        _ => beside(&target).and_then(|trial| File::create(&trial).and_then(|_| fs::remove_file(&trial))),
    };
    tried.map_err(|error| Error::Write { path: path.into(), reason: error.to_string() })
}

/// A name in the same folder that nobody else uses.
fn beside(path: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut unfinished = std::ffi::OsString::from(".");
    unfinished.push(name);
    unfinished.push(format!(".{}-{number}.unfinished", process::id()));
    Ok(path.with_file_name(unfinished))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn names(folder: &Folder) -> Vec<String> {
        let entries = fs::read_dir(folder.path("")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = Folder::new("files");
        let path = folder.path("data");
        replace(&path, |file| file.write_all(b"old")).unwrap();
        let error = replace(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(matches!(&error, Err(Error::Write { reason, .. }) if reason == "the disk is full"), "{error:?}");
        assert_eq!((fs::read(&path).unwrap(), names(&folder)), (b"old".to_vec(), vec!["data".to_owned()]));
        replace(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(&folder)), (b"new".to_vec(), vec!["data".to_owned()]));
    }

    #[test]
    fn places_are_tried_without_a_trace() {
        let folder = Folder::new("files-tried");
        let path = folder.path("data");
        try_place(&path).unwrap();
        assert!(names(&folder).is_empty());
        fs::write(&path, "old").unwrap();
        try_place(&path).unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(&folder)), (b"old".to_vec(), vec!["data".to_owned()]));
        for bad in [folder.path("no/such/folder"), folder.path(""), folder.path("data/below"), PathBuf::new()] {
            let error = try_place(&bad).unwrap_err();
            assert!(matches!(&error, Error::Write { path, .. } if *path == bad), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_stay_devices() {
        let folder = Folder::new("files-links");
        let (target, link) = (folder.path("target"), folder.path("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink("target", &link).unwrap();
        replace(&link, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let null = folder.path("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        replace(&null, |file| file.write_all(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_folder_that_is_not_there_and_a_path_without_a_name_are_errors() {
        let folder = Folder::new("files-absent");
        for path in [folder.path("no/such/folder"), PathBuf::from("/"), PathBuf::from("")] {
            assert!(matches!(replace(&path, |_| Ok(())), Err(Error::Write { .. })), "{path:?}");
        }
    }
}
