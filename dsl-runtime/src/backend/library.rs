//! Whether a vendor's library is on this machine.

use std::error::Error;

/// The first of `names` that can be loaded, or the loader's complaint about the first, which is this system's own.
pub(super) fn find(names: &[&'static str]) -> Result<&'static str, String> {
    let mut complaint = None;
    for &name in names {
        // SAFETY: loading a vendor's driver library runs its initialisers, which is what every user of the driver
        // does first.
        match unsafe { libloading::Library::new(name) } {
            Ok(library) => {
                // Drivers start threads and keep state: unloading them again is what breaks.
                std::mem::forget(library);
                return Ok(name);
            }
            Err(error) => {
                // The loader's own words are the cause.
                let cause = error.source().map(ToString::to_string);
                complaint.get_or_insert_with(|| cause.unwrap_or_else(|| error.to_string()));
            }
        }
    }
    Err(complaint.unwrap_or_else(|| "no name to look for".to_owned()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_missing_library_is_a_reason_and_a_present_one_is_found() {
        let reason = super::find(&["libpolyhalo-nowhere.so.1"]).unwrap_err();
        assert!(reason.contains("libpolyhalo-nowhere.so.1"), "{reason}");
        #[cfg(target_os = "linux")]
        assert_eq!(super::find(&["libpolyhalo-nowhere.so.1", "libc.so.6"]), Ok("libc.so.6"));
    }
}
