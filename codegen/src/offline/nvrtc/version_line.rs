//! Makes PTX loadable by older drivers, and the same whichever build of NVRTC wrote it.

/// PTX without the comment in front of it, which tells the compiler's build.
pub(super) fn without_preamble(ptx: &str) -> &str {
    ptx.find(".version").map_or(ptx, |start| &ptx[start..]).trim_end_matches('\0')
}

/// The PTX with its `.version` line lowered to the oldest that serves its target.
///
/// NVRTC writes the newest version that it knows, and a driver refuses what is newer than itself, although the text differs
/// in that line only. The versions here were proven with `ptxas` on generated kernels: it gave the same machine code down
/// to them. 6.3 lets one `compute_70` text serve all GPUs from Volta to Blackwell. A target that is not listed, and a
/// version that is low enough, stay as they are.
pub fn lowered(ptx: &str) -> String {
    const OLDEST: [(&str, (u32, u32)); 9] = [
        ("sm_70", (6, 3)),
        ("sm_72", (6, 3)),
        ("sm_75", (6, 3)),
        ("sm_80", (7, 0)),
        ("sm_86", (7, 1)),
        ("sm_87", (7, 4)),
        ("sm_89", (7, 8)),
        ("sm_90", (7, 8)),
        ("sm_100", (8, 6)),
    ];
    let word = |directive: &str| {
        let line = ptx.lines().find_map(|line| line.strip_prefix(directive))?;
        line.split([',', '/']).next().map(str::trim)
    };
    let number = |version: &str| {
        let (major, minor) = version.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let (Some(written), Some(target)) = (word(".version "), word(".target ")) else {
        return ptx.into();
    };
    let oldest = OLDEST.iter().find(|(name, _)| *name == target).map(|(_, oldest)| *oldest);
    match (number(written), oldest) {
        (Some(version), Some(oldest)) if oldest < version => {
            ptx.replacen(&format!(".version {written}"), &format!(".version {}.{}", oldest.0, oldest.1), 1)
        }
        _ => ptx.into(),
    }
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
    fn the_comment_in_front_and_the_nul_behind_are_dropped() {
        let ptx = "//\n// Compiler Build ID: CL-1\n//\n\n.version 8.8\n.target sm_70\n\0";
        assert_eq!(without_preamble(ptx), ".version 8.8\n.target sm_70\n");
        assert_eq!(without_preamble("no PTX"), "no PTX");
    }
}
