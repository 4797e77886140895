//! What the program and its child write to each other: files of parts, each led by its length.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Hiprtc;
use polyhalo_codegen::offline::Outcome;

/// The first and the last part of every file. The number changes with the layout: the two processes run the same program, but a file
/// of another one may lie in the way.
const MARK: &[u8] = b"polyhalo hiprtc 1";

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Files and names of the library; the first that is hiprtc serves.
    pub(super) libraries: Vec<PathBuf>,
    /// What is asked for.
    pub(super) work: Work,
}

/// What a child does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Say which library serves and what its version is: see [`identity`].
    Identify,
    /// Compile.
    Compile {
        /// HIP.
        source: String,
        /// What the log calls it.
        name: String,
        /// The options.
        options: Vec<String>,
    },
}

impl Request {
    /// The bytes of a file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let count = self.libraries.len().to_string();
        let mut parts = vec![count.as_bytes()];
        parts.extend(self.libraries.iter().map(|path| path.as_os_str().as_encoded_bytes()));
        match &self.work {
            Work::Identify => {}
            Work::Compile { source, name, options } => {
                parts.extend([source.as_bytes(), name.as_bytes()]);
                parts.extend(options.iter().map(String::as_bytes));
            }
        }
        join(&parts)
    }

    /// The request of a file; nothing if it isn't one.
    pub(super) fn read(bytes: &[u8]) -> Option<Request> {
        let parts = split(bytes)?;
        let (count, rest) = parts.split_first()?;
        let (libraries, work) = rest.split_at_checked(text(count)?.parse().ok()?)?;
        let libraries = libraries.iter().map(|path| self::path(path)).collect::<Option<_>>()?;
        let work = match work {
            [] => Work::Identify,
            [source, name, options @ ..] => {
                let options = options.iter().map(|option| text(option)).collect::<Option<_>>()?;
                Work::Compile { source: text(source)?, name: text(name)?, options }
            }
            [_] => return None,
        };
        Some(Request { libraries, work })
    }
}

/// The bytes of a file with an answer.
pub(super) fn answer(outcome: &Outcome<Vec<u8>>) -> Vec<u8> {
    let (kind, content) = match outcome {
        Outcome::Built(product) => ("built", product.as_slice()),
        Outcome::Absent(reason) => ("absent", reason.as_bytes()),
        Outcome::Rejected(log) => ("rejected", log.as_bytes()),
    };
    join(&[kind.as_bytes(), content])
}

/// The answer of a file; nothing if it isn't one.
pub(super) fn outcome(bytes: &[u8]) -> Option<Outcome<Vec<u8>>> {
    let parts = split(bytes)?;
    let [kind, content] = parts.as_slice() else { return None };
    match text(kind)?.as_str() {
        "built" => Some(Outcome::Built(content.to_vec())),
        "absent" => Some(Outcome::Absent(text(content)?)),
        "rejected" => Some(Outcome::Rejected(text(content)?)),
        _ => None,
    }
}

/// What a child says of the library that serves.
pub(super) fn introduction(hiprtc: &Hiprtc) -> Vec<u8> {
    join(&[hiprtc.version.as_bytes(), hiprtc.build.as_bytes(), hiprtc.library.as_os_str().as_encoded_bytes()])
}

/// The library of an introduction.
pub(super) fn identity(bytes: &[u8]) -> Option<Hiprtc> {
    let parts = split(bytes)?;
    let [version, build, library] = parts.as_slice() else { return None };
    Some(Hiprtc { library: path(library)?, version: text(version)?, build: text(build)? })
}

fn text(part: &[u8]) -> Option<String> {
    String::from_utf8(part.to_vec()).ok()
}

fn path(part: &[u8]) -> Option<PathBuf> {
    #[cfg(unix)]
    let path = <OsString as std::os::unix::ffi::OsStringExt>::from_vec(part.to_vec());
    #[cfg(not(unix))]
    let path = OsString::from(text(part)?);
    Some(path.into())
}

/// The mark stands behind the last part too, so that what is cut short is no message.
fn join(parts: &[&[u8]]) -> Vec<u8> {
    let parts = [&[MARK], parts, &[MARK]].concat();
    parts.iter().flat_map(|part| [&(part.len() as u64).to_le_bytes(), *part].concat()).collect()
}

/// The parts between the marks.
fn split(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        parts.push(part);
        bytes = rest;
    }
    match parts.as_slice() {
        [first, inside @ .., last] if *first == MARK && *last == MARK => Some(inside.to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile() -> Request {
        let work = Work::Compile {
            source: "extern \"C\" \u{e9}".into(),
            name: "heat.hip".into(),
            options: vec!["-O3".into(), String::new()],
        };
        Request { libraries: vec!["/a b/lib.so".into(), "lib.so.5".into()], work }
    }

    #[test]
    fn what_is_written_is_read() {
        for request in [compile(), Request { work: Work::Identify, ..compile() }] {
            assert_eq!(Request::read(&request.bytes()), Some(request));
        }
        for result in [
            Outcome::Built(vec![0, 255]),
            Outcome::Built(Vec::new()),
            Outcome::Absent("why".into()),
            Outcome::Rejected("log".into()),
        ] {
            assert_eq!(outcome(&answer(&result)), Some(result));
        }
        let hiprtc = Hiprtc { library: "libhiprtc.so.6".into(), version: "6.2".into(), build: "7".into() };
        assert_eq!(identity(&introduction(&hiprtc)), Some(hiprtc));
    }

    #[test]
    fn what_is_cut_short_or_strange_is_no_message() {
        let (request, result) = (compile().bytes(), answer(&Outcome::Built(b"code".to_vec())));
        assert!((0..request.len()).all(|length| Request::read(&request[..length]).is_none()));
        assert!((0..result.len()).all(|length| outcome(&result[..length]).is_none()));
        for strange in [&b""[..], b"x", &[255; 64], &result[1..], &join(&[])] {
            assert!(outcome(strange).is_none() && Request::read(strange).is_none() && identity(strange).is_none());
        }
        assert!(outcome(&join(&[b"unknown", b""])).is_none());
        assert!(Request::read(&join(&[b"3", b"one"])).is_none());
        assert!(Request::read(&join(&[b"0", b"source only"])).is_none());
    }
}
