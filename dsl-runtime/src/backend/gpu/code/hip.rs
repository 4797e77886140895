//! A code object for a card of AMD's.

use polyhalo_codegen::offline::Outcome;

use super::{Attempts, Loaded, Means, from_where, hiprtc};
use crate::backend::gpu::driver::Image;
use crate::error::Result;

/// What would have worked.
const CURE: &str = "install ROCm's hiprtc where the program runs (POLYHALO_HIPRTC names its file or folder)";

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
            true => "there are none, because clang was missing when the program was built".to_owned(),
            false => format!("none is for {name}, only for {}", there.join(", ")),
        };
        attempts.failed("embedded code objects", &reason);
    }
    match compile(&mut attempts, name, means)? {
        Some(loaded) => Ok(loaded),
        None => Err(attempts.unsupported(CURE)),
    }
}

/// What the hiprtc of this machine makes of the source.
fn compile(attempts: &mut Attempts<'_>, name: &str, means: &Means<'_>) -> Result<Option<Loaded>> {
    let kernel = attempts.kernel;
    if kernel.code.hip.is_empty() {
        attempts.failed("hiprtc", "the kernel carries no HIP source");
        return Ok(None);
    }
    let hiprtc = match hiprtc::find(means.environment) {
        Ok(hiprtc) => hiprtc,
        Err(reason) => {
            attempts.failed("hiprtc", &reason);
            return Ok(None);
        }
    };
    let program = hiprtc::Program { source: kernel.code.hip, name: kernel.name, arch: name, contract: kernel.contract };
    let origin = format!("hiprtc for {name}");
    match hiprtc.kept_object(means.cache, &attempts.driver.version(), &program) {
        Outcome::Built((object, provenance)) => {
            attempts.image(format!("{origin}{}", from_where(provenance)), Image::Object(&object))
        }
        Outcome::Absent(reason) => {
            attempts.failed(&origin, &reason);
            Ok(None)
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
