//! Makes PTX loadable by older drivers, and the same whichever build of NVRTC wrote it.

/// PTX without the comment in front of it, which tells the compiler's build.
pub(super) fn without_preamble(ptx: &str) -> &str {
    ptx.find(".version").map_or(ptx, |start| &ptx[start..]).trim_end_matches('\0')
}

/// A version of PTX: major and minor.
pub(super) type Version = (u32, u32);

/// What is known of a target: the version that [`lowered`] gives it, and the oldest that takes it.
///
/// The versions were proven with `ptxas` on generated kernels: it gave the same machine code down to the oldest.
pub(super) const TARGETS: [(&str, Version, Version); 9] = [
    ("sm_70", (6, 3), (6, 0)),
    ("sm_72", (6, 3), (6, 1)),
    ("sm_75", (6, 3), (6, 3)),
    ("sm_80", (7, 0), (7, 0)),
    ("sm_86", (7, 1), (7, 1)),
    ("sm_87", (7, 4), (7, 4)),
    ("sm_89", (7, 8), (7, 8)),
    ("sm_90", (7, 8), (7, 8)),
    ("sm_100", (8, 6), (8, 6)),
];

/// The PTX with its `.version` line lowered to one that serves its target on nearly every driver.
///
/// NVRTC writes the newest version that it knows, and a driver refuses what is newer than itself, although the text differs
/// in that line only. 6.3 lets one `compute_70` text serve all GPUs from Volta to Blackwell. A target that is not listed,
/// and a version that is low enough, stay as they are.
pub fn lowered(ptx: &str) -> String {
    match (version(ptx), target(ptx).and_then(known)) {
        (Some(written), Some((_, usual, _))) if *usual < written => with_version(ptx, *usual),
        _ => ptx.into(),
    }
}

/// The PTX as a driver takes it whose newest version is `newest`, or why there is no such text.
pub fn lowered_to(ptx: &str, newest: Version) -> Result<String, String> {
    let (Some(written), Some(target)) = (version(ptx), target(ptx)) else {
        return Err("it has no `.version` and `.target`".into());
    };
    let shown = |(major, minor): Version| format!("{major}.{minor}");
    if written <= newest {
        return Ok(ptx.into());
    }
    let taken = format!("the driver takes PTX up to version {}", shown(newest));
    match known(target) {
        Some((_, _, oldest)) if *oldest <= newest => Ok(with_version(ptx, newest)),
        Some((_, _, oldest)) => Err(format!("{taken}, and {target} needs {}", shown(*oldest))),
        None => Err(format!("{taken}, and this is version {} for {target}", shown(written))),
    }
}

/// The `.target` of a PTX, such as `sm_70`.
pub fn target(ptx: &str) -> Option<&str> {
    word(ptx, ".target ")
}

fn known(target: &str) -> Option<&'static (&'static str, Version, Version)> {
    TARGETS.iter().find(|(name, ..)| *name == target)
}

fn version(ptx: &str) -> Option<Version> {
    let (major, minor) = word(ptx, ".version ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn word<'a>(ptx: &'a str, directive: &str) -> Option<&'a str> {
    let line = ptx.lines().find_map(|line| line.strip_prefix(directive))?;
    line.split([',', '/']).next().map(str::trim)
}

/// A PTX that has a version, with another one.
fn with_version(ptx: &str, (major, minor): Version) -> String {
    let written = word(ptx, ".version ").unwrap_or_default();
    ptx.replacen(&format!(".version {written}"), &format!(".version {major}.{minor}"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_line_is_lowered_to_what_the_target_needs() {
        let ptx = |version: &str, target: &str| {
            format!(".version {version}\n.target {target}\n.address_size 64\n// .version {version}\n")
        };
        let check = |target: &str, written: &str, expected: &str| {
            let lowered = lowered(&ptx(written, target));
            assert_eq!(lowered.lines().next(), Some(format!(".version {expected}").as_str()), "{target}");
            assert_eq!(
                lowered.lines().skip(1).collect::<Vec<_>>(),
                ptx(written, target).lines().skip(1).collect::<Vec<_>>()
            );
        };
        check("sm_70", "8.8", "6.3");
        check("sm_75", "9.5", "6.3");
        check("sm_80", "8.8", "7.0");
        check("sm_90", "8.8", "7.8");
        check("sm_90, debug", "8.8", "7.8");
        check("sm_100", "8.8", "8.6");
        check("sm_100", "10.1", "8.6");
        // Never raised, and left alone where nothing was proven.
        check("sm_70", "6.0", "6.0");
        check("sm_120", "8.8", "8.8");
        check("sm_90a", "8.8", "8.8");
        for other in ["", "no PTX", ".version 8.8", ".version x.y\n.target sm_70\n"] {
            assert_eq!(lowered(other), other);
        }
    }

    #[test]
    fn a_driver_gets_ptx_that_it_takes_or_a_reason() {
        let ptx =
            |version: &str, target: &str| format!(".version {version}\n.target {target}\n// .version {version}\n");
        let takes = |target: &str, written: &str, newest: Version, expected: &str| {
            assert_eq!(lowered_to(&ptx(written, target), newest).unwrap(), {
                ptx(written, target).replacen(written, expected, 1)
            });
        };
        takes("sm_70", "8.8", (6, 0), "6.0");
        takes("sm_70", "6.3", (6, 1), "6.1");
        takes("sm_80", "8.8", (7, 0), "7.0");
        takes("sm_90", "8.8", (8, 0), "8.0");
        takes("sm_100", "9.5", (8, 6), "8.6");
        // What the driver takes anyway stays.
        takes("sm_70", "6.3", (6, 3), "6.3");
        takes("sm_90a", "8.0", (8, 8), "8.0");
        takes("sm_120", "8.8", (10, 0), "8.8");
        let refused = |target: &str, written: &str, newest: Version, told: &str| {
            assert_eq!(lowered_to(&ptx(written, target), newest).unwrap_err(), told);
        };
        refused("sm_70", "8.8", (5, 0), "the driver takes PTX up to version 5.0, and sm_70 needs 6.0");
        refused("sm_75", "8.8", (6, 0), "the driver takes PTX up to version 6.0, and sm_75 needs 6.3");
        refused("sm_100", "8.8", (8, 5), "the driver takes PTX up to version 8.5, and sm_100 needs 8.6");
        refused("sm_120", "8.8", (8, 6), "the driver takes PTX up to version 8.6, and this is version 8.8 for sm_120");
        assert_eq!(lowered_to("no PTX", (8, 8)).unwrap_err(), "it has no `.version` and `.target`");
    }

    #[test]
    fn the_comment_in_front_and_the_nul_behind_are_dropped() {
        let ptx = "//\n// Compiler Build ID: CL-1\n//\n\n.version 8.8\n.target sm_70\n\0";
        assert_eq!(without_preamble(ptx), ".version 8.8\n.target sm_70\n");
        assert_eq!(without_preamble("no PTX"), "no PTX");
    }
}
