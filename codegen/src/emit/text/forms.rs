//! The forms in which a kernel stands in CUDA C and HIP: which points a thread computes, and how wide indices are.
//!
//! What a thread does is a function whose template parameter is the type of indices; the kernels themselves only call it.

use super::c::{Argument, ArgumentKind, Source};
use super::march::March;
use super::stores::stores_last;
use super::term::Term;
use super::{entry_point, rows_entry_point};
use crate::emit::Target;
use crate::emit::names::Names;
use crate::verify::Verified;

/// A form of a kernel. All take the same arguments and give the same bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuForm {
    /// The name of the kernel.
    pub entry: String,
    /// Which points a thread computes.
    pub walk: Walk,
    /// Whether indices of cells have 32 bits; 64 otherwise.
    pub narrow: bool,
}

/// Which points a thread computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Walk {
    /// One.
    Point,
    /// A part of a column along Z.
    March,
    /// A row along X, where results are folded.
    Row,
}

impl Walk {
    /// All ways.
    const ALL: [Walk; 3] = [Walk::Point, Walk::March, Walk::Row];

    /// The name of the kernel that goes this way.
    fn entry(self, name: &str, narrow: bool) -> String {
        let entry = match self {
            Walk::Point => entry_point(name),
            Walk::March => format!("{}_march", entry_point(name)),
            Walk::Row => rows_entry_point(name),
        };
        if narrow { format!("{entry}_32") } else { entry }
    }
}

/// Every name that a form of kernel `name` may have.
pub(crate) fn entries(name: &str) -> impl Iterator<Item = String> {
    Walk::ALL.into_iter().flat_map(move |walk| [false, true].map(|narrow| walk.entry(name, narrow)))
}

/// The forms of a kernel, in the order in which they stand in the source.
pub fn gpu_forms(kernel: &Verified) -> Vec<GpuForm> {
    let folds = kernel.outputs.iter().any(|output| output.role.is_fold());
    let marches = || {
        let kernel = stores_last(kernel);
        March::new(&kernel, &mut Names::new(&kernel, Target::Cuda)).is_some()
    };
    let walks: &[Walk] = match folds {
        true => &[Walk::Row],
        false if marches() => &[Walk::Point, Walk::March],
        false => &[Walk::Point],
    };
    let forms = |walk: &Walk| {
        [false, true].map(|narrow| GpuForm { entry: walk.entry(&kernel.name, narrow), walk: *walk, narrow })
    };
    walks.iter().flat_map(forms).collect()
}

/// How CUDA C or HIP spell what they don't share.
pub(super) struct Spelling {
    /// What a kernel begins with.
    pub(super) kernel: &'static str,
    /// The number of the thread in the grid along an axis.
    pub(super) thread: fn(&str) -> String,
    /// The number of the block along Z, and of all of these blocks.
    pub(super) part: [&'static str; 2],
}

/// What the forms do, for the comment at the head.
pub(super) fn explained(source: &Source) -> Vec<String> {
    let name = &source.kernel.name;
    let mut lines = Vec::new();
    for walk in source.walks() {
        let does = match walk {
            Walk::Point => "one thread computes one point; threads run along x first.",
            Walk::March => "one thread computes the points of a column along z, one after the other, and keeps",
            Walk::Row => "one thread computes a row along x; threads are numbered by y, then z.",
        };
        lines.push(format!("{}: {does}", walk.entry(name, false)));
        if walk == Walk::March {
            lines.push(
                "  in registers what the next one needs too. The blocks of a grid along z share a column.".into(),
            );
        }
    }
    let narrow: Vec<String> = source.walks().into_iter().map(|walk| walk.entry(name, true)).collect();
    lines.push(format!("{}: the same with indices of 32 bits, for buffers that allow it.", narrow.join(", ")));
    lines
}

/// The functions and kernels of all forms.
pub(super) fn kernels(mut source: Source, spelling: &Spelling) -> String {
    let mut text = String::new();
    for walk in source.walks() {
        source.marches = walk == Walk::March;
        let function = source.own.functions[walk as usize].clone();
        text += &define(&source, walk, &function, spelling);
        for narrow in [false, true] {
            text += &kernel(&source, &walk.entry(&source.kernel.name, narrow), &function, narrow, spelling);
        }
    }
    text
}

/// The function that does what a thread does.
fn define(source: &Source, walk: Walk, function: &str, spelling: &Spelling) -> String {
    let thread = spelling.thread;
    let (comment, body) = match walk {
        Walk::Point => ("Computes a point.", source.point(["x", "y", "z"].map(thread))),
        Walk::March => {
            let march = source.march.as_ref().expect("a march is walked only where there is one");
            let part = spelling.part.map(String::from);
            ("Computes points along z.", source.column(march, ["x", "y"].map(thread), part))
        }
        Walk::Row => {
            let mut body = source.row_ids(["x", "y"].map(thread));
            body.extend(source.row(&[]));
            ("Computes a row.", body)
        }
    };
    let index = &source.own.index;
    let head = format!("static inline __attribute__((always_inline)) __device__ void {function}(");
    let head = Term::list(&head, parameters(source, Some(index)), ")").lines(0).join("\n");
    format!("\n// {comment}\ntemplate <typename {index}>\n{head}\n{{\n{}\n}}\n", body.join("\n"))
}

/// A kernel that calls a function.
fn kernel(source: &Source, entry: &str, function: &str, narrow: bool, spelling: &Spelling) -> String {
    let head = Term::list(&format!("{}{entry}(", spelling.kernel), parameters(source, None), ")");
    let passed = |Argument { name, kind }: Argument| {
        let cast = if narrow && matches!(kind, ArgumentKind::Stride) { "(int)" } else { "" };
        Term::whole(format!("{cast}{name}"))
    };
    let passed = source.pointers().into_iter().chain(source.numbers()).map(passed).collect();
    let index = if narrow { "int" } else { "long long" };
    let call = Term::call(&format!("{function}<{index}>"), passed).around("", ";");
    format!("\n{}\n{{\n{}\n}}\n", head.lines(0).join("\n"), call.lines(4).join("\n"))
}

/// The parameters of a kernel, or of a function whose strides have the type `index`.
fn parameters(source: &Source, index: Option<&str>) -> Vec<Term> {
    let pointer = |Argument { name, kind }: Argument| match kind {
        ArgumentKind::Output(ty) => format!("{} *{name}", source.stored(ty)),
        ArgumentKind::Field(ty) | ArgumentKind::Scalar(ty) => format!("const {} *{name}", source.stored(ty)),
        ArgumentKind::Stride | ArgumentKind::Extent => unreachable!("pointers are results and fields"),
    };
    let number = |argument: Argument| match (index, &argument.kind) {
        (Some(index), ArgumentKind::Stride) => format!("const {index} {}", argument.name),
        _ => source.number(&argument),
    };
    let pointers = source.pointers().into_iter().map(pointer);
    pointers.chain(source.numbers().into_iter().map(number)).map(Term::whole).collect()
}

impl Source<'_> {
    /// The ways in which a thread goes over points.
    fn walks(&self) -> Vec<Walk> {
        let walks = [(Walk::Point, !self.folds()), (Walk::March, self.march.is_some()), (Walk::Row, self.folds())];
        walks.into_iter().filter_map(|(walk, is_gone)| is_gone.then_some(walk)).collect()
    }
}
