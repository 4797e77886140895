//! Folds in the C dialects: a work item folds the results of a row into one value, in the same order everywhere.
//!
//! A sum of floats keeps eight running sums of doubles, by the local index along X modulo 8, each with what rounding took
//! from it; `dsl-runtime/src/reduction.rs` has the rules.

use super::address::ROWS;
use super::c::{Own, Source};
use super::guard::explanation;
use super::helper::Helper;
use super::term::Term;
use super::walk::Dialect;
use crate::emit::Target;
use crate::emit::names::Names;
use crate::ir::{Family, Output, Role, Type, Value};

/// The running sums of a row of floats.
pub(crate) const LANES: usize = 8;

/// The type of what is stored of a result: of a value that is the type itself, of a fold what each row leaves.
pub(crate) fn row_type(output: &Output) -> Type {
    match (output.role, output.ty.family()) {
        (Role::Sum, Family::Float) => Type::F64,
        (Role::Sum, Family::Signed) => Type::I64,
        (Role::Sum, Family::Unsigned | Family::Bool) => Type::U64,
        (Role::Value | Role::Max | Role::Min, _) => output.ty,
    }
}

/// The variables that fold a result.
pub(crate) enum Fold {
    /// Running sums, and what each lost.
    FloatSum { sum: String, lost: String },
    /// A sum modulo 2^64.
    IntegerSum(String),
    /// The value so far, and what takes one more value into account.
    Extreme { kept: String, ty: Type, first: Value, helper: Helper },
}

impl Fold {
    /// What folds `output`, unless it is a value.
    pub(crate) fn new(output: &Output, names: &mut Names) -> Option<Fold> {
        let ty = output.ty;
        let extreme = |kept: String, first| {
            let [helper] = Helper::of_fold(output)[..] else { unreachable!("one function chooses among two values") };
            Fold::Extreme { kept, ty, first, helper }
        };
        match output.role {
            Role::Value => None,
            Role::Sum if ty.is_float() => Some(Fold::FloatSum { sum: names.fresh("sum"), lost: names.fresh("lost") }),
            Role::Sum => Some(Fold::IntegerSum(names.fresh("sum"))),
            Role::Max => Some(extreme(names.fresh("largest"), ends(ty)[0])),
            Role::Min => Some(extreme(names.fresh("least"), ends(ty)[1])),
        }
    }
}

/// The least and the greatest value of a type.
fn ends(ty: Type) -> [Value; 2] {
    match ty {
        Type::F64 => [Value::F64(f64::NEG_INFINITY), Value::F64(f64::INFINITY)],
        Type::F32 => [Value::F32(f32::NEG_INFINITY), Value::F32(f32::INFINITY)],
        Type::I64 => [Value::I64(i64::MIN), Value::I64(i64::MAX)],
        Type::I32 => [Value::I32(i32::MIN), Value::I32(i32::MAX)],
        Type::I8 => [Value::I8(i8::MIN), Value::I8(i8::MAX)],
        Type::U64 => [Value::U64(u64::MIN), Value::U64(u64::MAX)],
        Type::U32 => [Value::U32(u32::MIN), Value::U32(u32::MAX)],
        Type::U8 => [Value::U8(u8::MIN), Value::U8(u8::MAX)],
        Type::Bool => unreachable!("verified: truth values are not folded"),
    }
}

impl Source<'_> {
    /// Whether the kernel folds anything, so that it computes a row at a time.
    pub(crate) fn folds(&self) -> bool {
        self.folds.iter().any(Option::is_some)
    }

    /// Whether a row has running sums by lane.
    pub(crate) fn has_lanes(&self) -> bool {
        self.folds.iter().any(|fold| matches!(fold, Some(Fold::FloatSum { .. })))
    }

    /// The variables of all folds, as they are before the row.
    pub(crate) fn fold_variables(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.has_lanes() {
            lines.push(format!(
                "    // {LANES} running sums, by the index along x modulo {LANES}, and what rounding took from them."
            ));
        }
        lines.extend(self.folds.iter().flatten().map(|fold| match fold {
            Fold::FloatSum { sum, lost } => format!("    double {sum}[{LANES}] = {{0.0}}, {lost}[{LANES}] = {{0.0}};"),
            Fold::IntegerSum(sum) => {
                format!("    {} {sum} = {};", self.ty(Type::U64), self.literal(Value::U64(0)))
            }
            Fold::Extreme { kept, ty, first, .. } => {
                format!("    {} {kept} = {};", self.ty(*ty), self.literal(*first))
            }
        }));
        lines
    }

    /// What folds in the value of a point.
    pub(crate) fn folded(&self, fold: &Fold, value: Term) -> Term {
        match fold {
            Fold::FloatSum { sum, lost } => {
                let [sum, lost] = [sum, lost].map(|name| Term::whole(format!("&{name}[{}]", self.own.lane)));
                Term::call(&self.helpers[&Helper::AddUp], vec![sum, lost, value])
            }
            Fold::IntegerSum(sum) => {
                Term::prefix(&format!("({})", self.ty(Type::U64)), value).around(&format!("{sum} += "), "")
            }
            Fold::Extreme { kept, helper, .. } => {
                let folded = Term::call(&self.helpers[helper], vec![Term::whole(kept), value]);
                folded.around(&format!("{kept} = "), "")
            }
        }
    }

    /// Stores what the row leaves.
    pub(crate) fn fold_stores(&self) -> Vec<String> {
        let Own { cells, .. } = &self.own;
        let stored = self.kernel.outputs.enumerate().zip(&self.folds).filter_map(|((id, output), fold)| {
            let value = match fold.as_ref()? {
                Fold::FloatSum { sum, lost } => format!("{}({sum}, {lost})", self.helpers[&Helper::RowSum]),
                Fold::IntegerSum(sum) if row_type(output) == Type::I64 => format!("({}){sum}", self.ty(Type::I64)),
                Fold::IntegerSum(sum) => sum.clone(),
                Fold::Extreme { kept, .. } => kept.clone(),
            };
            Some(format!("    {}[{}] = {value};", self.names.output(id), cells[&ROWS].c))
        });
        stored.collect()
    }

    /// The function that adds to a running sum.
    pub(super) fn add_up(&self, name: &str) -> String {
        // What is added must have been rounded, even in a kernel whose operations may be fused.
        let (head, sum, rest) = match self.spelling.target {
            Target::OpenCl if self.kernel.contract => {
                ("#pragma OPENCL FP_CONTRACT OFF\n", "old + value", "(value - part)")
            }
            Target::Hip if self.kernel.contract => {
                ("#pragma clang fp contract(off)\n", "old + value", "(value - part)")
            }
            Target::Cuda if self.kernel.contract => ("", "__dadd_rn(old, value)", "__dsub_rn(value, part)"),
            _ => ("", "old + value", "(value - part)"),
        };
        format!(
            "// {}\n{} void {name}(double *sum, double *lost, const double value)\n{{\n{head}\
             \x20   const double old = *sum;\n\
             \x20   *sum = {sum};\n\
             \x20   const double part = *sum - old;\n\
             \x20   *lost += (old - (*sum - part)) + {rest};\n}}\n",
            explanation(Helper::AddUp),
            self.spelling.helper,
        )
    }

    /// The function that adds up the running sums of a row.
    pub(super) fn row_sum(&self, name: &str) -> String {
        format!(
            "// {}\n{} double {name}(const double *sums, const double *losses)\n{{\n\
             \x20   double sum = 0.0, lost = 0.0;\n\
             #pragma unroll\n\
             \x20   for (int lane = 0; lane < {LANES}; ++lane) {{\n\
             \x20       {}(&sum, &lost, sums[lane]);\n\
             \x20       lost += losses[lane];\n\
             \x20   }}\n\
             \x20   return lost - lost == 0.0 ? sum + lost : sum;\n}}\n",
            explanation(Helper::RowSum),
            self.spelling.helper,
            self.helpers[&Helper::AddUp],
        )
    }
}
