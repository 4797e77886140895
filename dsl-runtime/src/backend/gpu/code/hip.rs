//! A code object for a card of AMD's.

use polyhalo_codegen::offline::Outcome;

use super::{Attempts, Loaded, Means, from_where, hiprtc};
use crate::backend::gpu::driver::Image;
use crate::error::Result;
use crate::kernel::KernelDesc;

/// What would have worked where there is no hiprtc.
const INSTALL: &str = "install ROCm's hiprtc where the program runs (POLYHALO_HIPRTC names its file or folder)";

/// What may work where there is one that made nothing of use.
const MATCH: &str =
    "the hiprtc of the driver's own release of ROCm may serve (POLYHALO_HIPRTC names its file or folder)";

/// Loads what is embedded for the card, whose processor and features are `name`, else what hiprtc makes for it.
pub(super) fn load(mut attempts: Attempts<'_>, name: &str, means: &Means<'_>) -> Result<Loaded> {
    let objects = attempts.kernel.code.hip_objects;
    let fitting: Vec<_> = objects.iter().filter(|(made_for, _)| runs_on(made_for, name)).collect();
    for (made_for, object) in &fitting {
        let origin = format!("code object for {made_for}");
        if let Some(loaded) = attempts.image(origin, Image::Object(object))? {
            return Ok(loaded);
        }
    }
    if fitting.is_empty() {
        let there: Vec<_> = objects.iter().map(|(made_for, _)| *made_for).collect();
        let reason = match there.is_empty() {
            true => format!("there are none, because {}", why_none(attempts.kernel)),
            false => format!("none is for {name}, only for {}", there.join(", ")),
        };
        attempts.failed("embedded code objects", &reason);
    }
    match compile(&mut attempts, name, means)? {
        Ok(loaded) => Ok(loaded),
        Err(cure) => Err(attempts.unsupported(cure)),
    }
}

/// Why nothing was compiled when the program was built.
fn why_none(kernel: &KernelDesc) -> String {
    let called: Vec<_> = kernel.vendor_functions.iter().map(|function| format!("`{function}`")).collect();
    match called.is_empty() {
        true => "clang was missing when the program was built".to_owned(),
        false => format!(
            "the kernel calls {}, for which the code needs AMD's device library, so that hiprtc must compile it where it runs",
            called.join(", ")
        ),
    }
}

/// What the hiprtc of this machine makes of the source, else what would have worked.
fn compile(attempts: &mut Attempts<'_>, name: &str, means: &Means<'_>) -> Result<Result<Loaded, &'static str>> {
    let kernel = attempts.kernel;
    if kernel.code.hip.is_empty() {
        attempts.failed("hiprtc", "the kernel carries no HIP source");
        return Ok(Err(INSTALL));
    }
    let hiprtc = match hiprtc::find(means.environment) {
        Ok(hiprtc) => hiprtc,
        Err(reason) => {
            attempts.failed("hiprtc", &reason);
            return Ok(Err(INSTALL));
        }
    };
    let program = hiprtc::Program { source: kernel.code.hip, name: kernel.name, arch: name, contract: kernel.contract };
    let origin = format!("hiprtc for {name}");
    match hiprtc.kept_object(means.cache, &attempts.driver.version(), &program) {
        Outcome::Built((object, provenance)) => {
            let loaded = attempts.image(format!("{origin}{}", from_where(provenance)), Image::Object(&object))?;
            Ok(loaded.ok_or(MATCH))
        }
        Outcome::Absent(reason) => {
            attempts.failed(&origin, &reason);
            Ok(Err(MATCH))
        }
        Outcome::Rejected(log) => Err(attempts.rejected(format!("HIP, by {hiprtc} for {name}"), log)),
    }
}

/// Whether a code object made for one architecture runs on a card of another: the processor is the same, and the card has
/// what the object asks for beyond it. What an object doesn't mention it takes either way.
fn runs_on(object: &str, card: &str) -> bool {
    let (mut asked, mut there) = (object.split(':'), card.split(':'));
    asked.next() == there.next() && {
        let there: Vec<_> = there.collect();
        asked.all(|feature| there.contains(&feature))
    }
}

#[cfg(test)]
mod tests {
    use super::runs_on;

    #[test]
    fn an_object_runs_on_cards_of_its_processor_that_have_what_it_asks_for() {
        for (object, card, runs) in [
            ("gfx90a", "gfx90a", true),
            ("gfx90a", "gfx90a:sramecc+:xnack-", true),
            ("gfx90a:xnack-", "gfx90a:sramecc+:xnack-", true),
            ("gfx90a:xnack+", "gfx90a:sramecc+:xnack-", false),
            ("gfx90a:xnack-", "gfx90a", false),
            ("gfx90", "gfx90a", false),
            ("gfx90a", "gfx90", false),
            ("gfx942", "gfx90a:sramecc+:xnack-", false),
            ("", "gfx90a", false),
        ] {
            assert_eq!(runs_on(object, card), runs, "{object} on {card}");
        }
    }
}
