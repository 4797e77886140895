//! The C text of the functions that stand above a kernel: see [`Helper`].

use super::c::Source;
use super::helper::Helper;
use super::term::Term;
use super::walk::Dialect;
use crate::ir::{Family, Function, Type, Unary, Value};

impl Source<'_> {
    /// The functions above the kernel, each after an empty line.
    pub(crate) fn functions(&self) -> String {
        self.helpers.iter().map(|(helper, name)| format!("\n{}", self.define(*helper, name))).collect()
    }

    /// The text of one, a line or a few.
    fn define(&self, helper: Helper, name: &str) -> String {
        let (ty, of) = match helper {
            Helper::AddUp => return self.add_up(name),
            Helper::RowSum => return self.row_sum(name),
            Helper::Divide(ty) | Helper::Remainder(ty) | Helper::Min(ty) | Helper::Max(ty) => (ty, None),
            Helper::Largest(ty) | Helper::Least(ty) => (ty, None),
            Helper::Abs(ty) => (ty, Some(ty)),
            Helper::Saturate { from, to } => (to, Some(from)),
        };
        let parameters = match of {
            Some(from) => format!("{} a", self.ty(from)),
            None => format!("{0} a, {0} b", self.ty(ty)),
        };
        let head = format!("{} {} {name}({parameters})\n{{\n", self.spelling.helper, self.ty(ty));
        let lines = |term: Term| term.around("return ", ";").lines(4).join("\n");
        let text = match helper {
            Helper::Remainder(ty) if ty.is_float() => self.float_remainder(ty),
            helper => lines(Term::whole(self.result(helper))),
        };
        format!("// {}\n{head}{text}\n}}\n", explanation(helper))
    }

    /// What a helper that is an expression computes of `a` and `b`.
    fn result(&self, helper: Helper) -> String {
        let negated = |ty: Type| self.unary(Unary::Neg, ty, Term::whole("a")).to_string();
        match helper {
            Helper::Divide(ty @ (Type::I64 | Type::I32)) => {
                format!("b == 0 ? 0 : b == -1 ? {} : a / b", negated(ty))
            }
            Helper::Divide(ty) => format!("b == 0 ? 0 : {}", self.cast_if_small(ty, "a / b")),
            Helper::Remainder(Type::I64 | Type::I32) => "b == 0 || b == -1 ? 0 : a % b".into(),
            Helper::Remainder(ty) => format!("b == 0 ? 0 : {}", self.cast_if_small(ty, "a % b")),
            Helper::Min(ty) if ty.is_float() => "a != a || b < a ? b : a".into(),
            Helper::Max(ty) if ty.is_float() => "a != a || b > a ? b : a".into(),
            Helper::Min(_) => "b < a ? b : a".into(),
            Helper::Max(_) => "b > a ? b : a".into(),
            Helper::Largest(ty) => format!("b > a || b != b ? b + {} : a", self.zero(ty)),
            Helper::Least(ty) => format!("b < a || b != b ? b + {} : a", self.zero(ty)),
            Helper::Abs(ty) => format!("a < 0 ? {} : a", negated(ty)),
            Helper::Saturate { from, to } => {
                let [least, most] = ends(to).map(|end| self.literal(end).to_string());
                let [low, high] = bounds(from, to).map(|bound| self.literal(bound).to_string());
                let inside = format!("({})a", self.ty(to));
                match to.family() {
                    Family::Signed => {
                        format!("a >= {high} ? {most} : a > {low} ? {inside} : a == a ? {least} : 0")
                    }
                    _ => format!("a >= {high} ? {most} : a > {low} ? {inside} : {least}"),
                }
            }
            Helper::AddUp | Helper::RowSum => unreachable!("these are more than an expression"),
        }
    }

    fn zero(&self, ty: Type) -> Term {
        self.literal(if ty == Type::F64 { Value::F64(0.0) } else { Value::F32(0.0) })
    }

    fn cast_if_small(&self, ty: Type, text: &str) -> String {
        if ty.bytes() == 1 { format!("({})({text})", self.ty(ty)) } else { text.into() }
    }

    /// The remainder of floats where there is no exact one.
    fn float_remainder(&self, ty: Type) -> String {
        let abs = |of: &str| self.call(Function::Abs, ty, vec![Term::whole(of)]).to_string();
        let copysign = self.call(Function::Copysign, ty, vec![Term::whole("rest"), Term::whole("a")]).to_string();
        let [half, zero, most] = match ty {
            Type::F64 => [Value::F64(0.5), Value::F64(0.0), Value::F64(f64::MAX)],
            _ => [Value::F32(0.5), Value::F32(0.0), Value::F32(f32::MAX)],
        }
        .map(|value| self.literal(value).to_string());
        let float = self.ty(ty);
        format!(
            "    {float} rest = {};\n\
             \x20   const {float} unit = {};\n\
             \x20   if (!(rest <= {most}) || !(unit > {zero})) {{\n\
             \x20       return {zero} / {zero};\n\
             \x20   }}\n\
             \x20   if (rest < unit) {{\n\
             \x20       return a;\n\
             \x20   }}\n\
             \x20   {float} part = unit;\n\
             \x20   while (part <= {half} * rest) {{\n\
             \x20       part += part;\n\
             \x20   }}\n\
             \x20   for (; part >= unit; part *= {half}) {{\n\
             \x20       if (rest >= part) {{\n\
             \x20           rest -= part;\n\
             \x20       }}\n\
             \x20   }}\n\
             \x20   return {copysign};",
            abs("a"),
            abs("b"),
        )
    }
}

/// What a helper is for.
pub(super) fn explanation(helper: Helper) -> String {
    match helper {
        Helper::Divide(ty) if ty.family() == Family::Signed => {
            "a / b; 0 when b is 0, and the least integer by -1 stays as it is.".into()
        }
        Helper::Divide(_) => "a / b, 0 when b is 0.".into(),
        Helper::Remainder(ty) if ty.is_float() => {
            "The exact remainder of a / b rounded towards zero: takes b times powers of two off a.".into()
        }
        Helper::Remainder(ty) if ty.family() == Family::Signed => "a % b, 0 when b is 0 or -1.".into(),
        Helper::Remainder(_) => "a % b, 0 when b is 0.".into(),
        Helper::Min(ty) if ty.is_float() => "The lesser number; b when a is none.".into(),
        Helper::Max(ty) if ty.is_float() => "The greater number; b when a is none.".into(),
        Helper::Min(_) => "The lesser number.".into(),
        Helper::Max(_) => "The greater number.".into(),
        Helper::Abs(_) => "The absolute value; the least integer stays as it is.".into(),
        Helper::Saturate { to, .. } => format!("The nearest {to} towards zero; 0 when a is not a number."),
        Helper::Largest(_) => "The greater number; none when either is none, and never -0.".into(),
        Helper::Least(_) => "The lesser number; none when either is none, and never -0.".into(),
        Helper::AddUp => {
            "Adds to a sum; what rounding takes from it is added to what it lost (Knuth's two-sum).".into()
        }
        Helper::RowSum => "The sum of all lanes with what they lost, unless that has no meaning.".into(),
    }
}

/// The least and the greatest integer of a type.
fn ends(ty: Type) -> [Value; 2] {
    match ty {
        Type::I64 => [Value::I64(i64::MIN), Value::I64(i64::MAX)],
        Type::I32 => [Value::I32(i32::MIN), Value::I32(i32::MAX)],
        Type::I8 => [Value::I8(i8::MIN), Value::I8(i8::MAX)],
        Type::U64 => [Value::U64(0), Value::U64(u64::MAX)],
        Type::U32 => [Value::U32(0), Value::U32(u32::MAX)],
        Type::U8 => [Value::U8(0), Value::U8(u8::MAX)],
        Type::F64 | Type::F32 | Type::Bool => unreachable!("only integers have ends"),
    }
}

/// Floats of type `from` between which a conversion to `to` does not leave its range: the least integer, and one more
/// than the greatest, both powers of two.
fn bounds(from: Type, to: Type) -> [Value; 2] {
    let bits = 8 * to.bytes() as i32;
    let [low, high] = match to.family() {
        Family::Signed => [-(2.0_f64.powi(bits - 1)), 2.0_f64.powi(bits - 1)],
        _ => [0.0, 2.0_f64.powi(bits)],
    };
    [low, high].map(|bound| if from == Type::F64 { Value::F64(bound) } else { Value::F32(bound as f32) })
}
