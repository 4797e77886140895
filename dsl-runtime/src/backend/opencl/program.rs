//! From a descriptor to an entry point on a device: which form of the code, which build options, and the vendor's log
//! when it fails.

use std::ffi::CString;

use super::call::{Context, DeviceId, Failure, Kernel};
use super::discover::Facts;
use super::mapping::{self, Entry};
use crate::backend::OpenClForm;
use crate::error::{Error, Result};
use crate::kernel::{KernelDesc, ScalarType};

/// A form of code that a program can be made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Source,
    SpirV,
}

impl Form {
    /// Its name in messages and reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Form::Source => "OpenCL C",
            Form::SpirV => "SPIR-V",
        }
    }
}

/// The form of a kernel for a device, or why there is none.
pub(super) fn form(facts: &Facts, wish: OpenClForm, kernel: &KernelDesc) -> Result<Form, &'static str> {
    let takes_spirv = facts.takes_spirv && !kernel.code.spirv.is_empty();
    let takes_source = facts.takes_source && !kernel.code.opencl.is_empty();
    match wish {
        OpenClForm::Auto if takes_spirv => Ok(Form::SpirV),
        OpenClForm::Auto if takes_source => Ok(Form::Source),
        OpenClForm::Auto => Err("the kernel carries no code in a form that the device takes"),
        OpenClForm::Source if takes_source => Ok(Form::Source),
        OpenClForm::Source if facts.takes_source => Err("OpenCL C was asked for, and the kernel carries none"),
        OpenClForm::Source => Err("OpenCL C was asked for, and the device takes only SPIR-V: leave the form open"),
        OpenClForm::SpirV if takes_spirv => Ok(Form::SpirV),
        OpenClForm::SpirV if facts.takes_spirv => Err("SPIR-V was asked for, and the kernel carries none"),
        OpenClForm::SpirV => Err("SPIR-V was asked for, and the device takes only OpenCL C: leave the form open"),
    }
}

/// The options of a build. None of them may ever loosen floating point.
pub(super) fn build_options(facts: &Facts, kernel: &KernelDesc) -> &'static str {
    if uses(kernel, ScalarType::F32) && facts.rounds_f32_division {
        "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
    } else {
        "-cl-std=CL1.2"
    }
}

/// Whether a field, a scalar, a result or what is stored of it has this type.
fn uses(kernel: &KernelDesc, ty: ScalarType) -> bool {
    kernel.types().any(|used| used == ty)
}

/// The number of arguments of an entry point and their bytes.
pub(super) fn arguments(kernel: &KernelDesc) -> (usize, usize) {
    let buffers = kernel.outputs.len() + kernel.fields.len();
    // A buffer is a pointer and the index of its origin, of which two may come together; two strides of 8 bytes and
    // seven or ten integers of 4 follow the scalars.
    let origins = if kernel.code.paired_origins { buffers.div_ceil(2) } else { buffers };
    let scalars: usize = kernel.params.iter().map(|param| param.ty.bytes().max(4)).sum();
    let integers = if kernel.uses_index { 10 } else { 7 };
    let count = buffers + origins + kernel.params.len() + 2 + integers;
    (count, 8 * (buffers + origins) + scalars + 2 * 8 + integers * 4)
}

/// A kernel that is ready to run.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) kernel: Kernel,
    pub(super) entry: Entry,
    /// The most work-items in a group.
    pub(super) group: usize,
}

/// Builds an entry point of a kernel for a device, the one that suits it unless `entry` names one. `driver` turns a
/// refused call into an error that names the device.
pub(super) fn load(
    context: &Context,
    device: DeviceId,
    facts: &Facts,
    (wish, entry): (OpenClForm, Option<Entry>),
    kernel: &KernelDesc,
    driver: impl Fn(Failure) -> Error,
) -> Result<Loaded> {
    let unsupported =
        |reason: String| Error::Unsupported { device: facts.info.to_string(), kernel: kernel.name.to_owned(), reason };
    if uses(kernel, ScalarType::F64) && !facts.info.fp64 {
        return Err(unsupported(
            "it computes on f64 or adds floats up, and the device has no double precision; a kernel on f32 that adds \
             nothing up would work"
                .into(),
        ));
    }
    let (count, bytes) = arguments(kernel);
    if bytes > facts.max_argument_bytes {
        let most = facts.max_argument_bytes;
        return Err(unsupported(format!(
            "its arguments take {bytes} bytes, and the device takes {most}; use fewer fields"
        )));
    }
    let form = form(facts, wish, kernel).map_err(|reason| unsupported(reason.to_owned()))?;
    let failed = |log: String| Error::Build {
        device: facts.info.to_string(),
        kernel: kernel.name.to_owned(),
        form: form.name().to_owned(),
        log,
    };
    let program = match form {
        Form::Source => context.program_from_source(kernel.code.opencl).map_err(&driver)?,
        Form::SpirV => {
            // Drivers have been seen to crash on a damaged module instead of refusing it.
            well_formed(kernel.code.spirv).map_err(|fault| failed(format!("the module is damaged: {fault}")))?;
            context.program_from_spirv(kernel.code.spirv).map_err(&driver)?
        }
    };
    let options = CString::new(build_options(facts, kernel)).expect("the options hold no zero");
    if let Err(failure) = program.build(device, &options) {
        let log = program.build_log(device).unwrap_or_default();
        return Err(failed(if log.is_empty() { format!("{} gave {failure} and no log", failure.call) } else { log }));
    }
    let entry = match entry {
        // Rows are folded by the work-item that computes them, and there is no other entry point.
        _ if kernel.folds() => Entry::Rows,
        Some(entry) => entry,
        None => mapping::entry(&facts.limits()),
    };
    let name =
        CString::new(entry.name(&kernel.code)).map_err(|_| failed("the name of the kernel holds a zero".into()))?;
    let function = program.kernel(&name).map_err(&driver)?;
    let found = function.arguments().map_err(&driver)?;
    if found as usize != count {
        return Err(failed(format!(
            "the entry point {name:?} takes {found} arguments, and the descriptor has {count}"
        )));
    }
    let group = function.largest_group(device).map_err(&driver)?;
    Ok(Loaded { kernel: function, entry, group })
}

/// Whether the words of a module are instructions from the first to the last.
fn well_formed(module: &[u8]) -> Result<(), &'static str> {
    const MAGIC: u32 = 0x0723_0203;
    const HEADER: usize = 5;
    let (words, rest) = module.as_chunks::<4>();
    if !rest.is_empty() || words.len() < HEADER {
        return Err("it isn't a whole number of words, or too short");
    }
    let word = |at: usize| u32::from_le_bytes(words[at]);
    if word(0) != MAGIC {
        return Err("it doesn't start with the number of SPIR-V");
    }
    let mut at = HEADER;
    while at < words.len() {
        match word(at) >> 16 {
            0 => return Err("an instruction has no words"),
            length => at += length as usize,
        }
    }
    if at == words.len() { Ok(()) } else { Err("its last instruction is cut off") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::opencl::tests::{HEAT, HEAT_F32, fictitious};

    #[test]
    fn the_form_is_what_device_kernel_and_wish_allow() {
        use OpenClForm::{Auto, Source, SpirV};
        let spirv_only = Facts { takes_source: false, ..fictitious() };
        let source_only = Facts { takes_spirv: false, ..fictitious() };
        for (facts, wish, expected) in [
            (fictitious(), Auto, Ok(Form::SpirV)),
            (fictitious(), Source, Ok(Form::Source)),
            (fictitious(), SpirV, Ok(Form::SpirV)),
            (source_only.clone(), Auto, Ok(Form::Source)),
            (source_only, SpirV, Err("takes only OpenCL C")),
            (spirv_only.clone(), Auto, Ok(Form::SpirV)),
            (spirv_only, Source, Err("takes only SPIR-V")),
        ] {
            match (form(&facts, wish, &HEAT), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => panic!("{wish:?}: {found:?} instead of {expected:?}"),
            }
        }
        assert_eq!(form(&fictitious(), Auto, &HEAT_F32), Ok(Form::Source), "no module falls back to source");
        assert!(form(&fictitious(), SpirV, &HEAT_F32).unwrap_err().contains("the kernel carries none"));
    }

    #[test]
    fn options_round_f32_where_possible_and_never_loosen_anything() {
        let rough = Facts { rounds_f32_division: false, ..fictitious() };
        assert_eq!(build_options(&fictitious(), &HEAT), "-cl-std=CL1.2");
        assert_eq!(build_options(&fictitious(), &HEAT_F32), "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt");
        assert_eq!(build_options(&rough, &HEAT_F32), "-cl-std=CL1.2");
        assert!(rough.notes()[1].contains("last bit"));
        assert_eq!(fictitious().notes(), ["driver 0"]);
    }

    #[test]
    fn a_damaged_module_is_found_out_before_a_driver_sees_it() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let whole = words(&[0x0723_0203, 0x10000, 0, 9, 0, 2 << 16 | 17, 6, 1 << 16]);
        assert_eq!(well_formed(&whole), Ok(()));
        for length in 0..whole.len() {
            // A module may end after its header and after any instruction.
            let ends_well = [20, 28].contains(&length);
            assert_eq!(well_formed(&whole[..length]).is_ok(), ends_well, "{length} bytes");
        }
        assert!(well_formed(&words(&[0x0302_2307, 0x10000, 0, 9, 0])).is_err());
        assert!(well_formed(&words(&[0x0723_0203, 0x10000, 0, 9, 0, 17])).is_err());
    }
}
