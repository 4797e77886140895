//! The constants of the standard library.

use syn::ExprPath;

use super::Front;
use super::report::tidy;
use super::scope::{IntType, Integer, Val};
use crate::ir::{ExprKind, Offset, Type, Value};

impl Front {
    /// `std::f64::consts::PI`, `f64::EPSILON` and their like.
    pub(super) fn constant_path(&mut self, path: &ExprPath) -> Val {
        let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let names = match names.as_slice() {
            ["std" | "core", rest @ ..] => rest,
            all => all,
        };
        let value = match names {
            ["f64", name] => constant64(name).map(Value::F64),
            ["f64", "consts", name] => constant64_consts(name).map(Value::F64),
            ["f32", name] => constant32(name).map(Value::F32),
            ["f32", "consts", name] => constant32_consts(name).map(Value::F32),
            ["Offset", name] => match *name {
                "HERE" => return Val::Offset(Offset::HERE),
                "X" => return Val::Offset(Offset([1, 0, 0])),
                "Y" => return Val::Offset(Offset([0, 1, 0])),
                "Z" => return Val::Offset(Offset([0, 0, 1])),
                _ => None,
            },
            [ty, name] => {
                if let Some(integer) = Type::named(ty).and_then(IntType::of).and_then(|ty| integer_constant(ty, name)) {
                    return Val::Integer(integer);
                }
                None
            }
            _ => None,
        };
        let Some(value) = value else {
            if let [float @ ("f64" | "f32"), name] = names
                && constant64_consts(name).is_some()
            {
                let message = format!("`{}` is not known inside the stencil", tidy(path));
                return self.poison(path, message, format!("write the whole path: `std::{float}::consts::{name}`"));
            }
            let help = "known paths are the constants of `std::f64`, `std::f32`, their `consts` and the limits of integers, `i32::MAX`; \
                 pass others as parameters";
            return self.poison(path, format!("`{}` is not known inside the stencil", tidy(path)), help);
        };
        let ty = self.types.known(value.ty());
        let place = self.reporter.place(path);
        Val::Number(self.expr_of(ExprKind::Literal(value), ty, place))
    }
}

/// `i32::MAX` and its like.
fn integer_constant(ty: IntType, name: &str) -> Option<Integer> {
    let (low, high) = ty.range();
    match name {
        "MIN" => Some(Integer::new(low, Some(ty))),
        "MAX" => Some(Integer::new(high, Some(ty))),
        "BITS" => Some(Integer::new(i128::from(ty.bits), IntType::of(Type::U32))),
        _ => None,
    }
}

/// The same table of `consts` for both widths.
macro_rules! consts {
    ($name:ident, $float:ident, [$($constant:ident)*]) => {
        fn $name(name: &str) -> Option<$float> {
            match name {
                $(stringify!($constant) => Some(std::$float::consts::$constant),)*
                _ => None,
            }
        }
    };
}
macro_rules! limits {
    ($name:ident, $float:ident) => {
        fn $name(name: &str) -> Option<$float> {
            match name {
                "EPSILON" => Some($float::EPSILON),
                "MAX" => Some($float::MAX),
                "MIN" => Some($float::MIN),
                "MIN_POSITIVE" => Some($float::MIN_POSITIVE),
                "INFINITY" => Some($float::INFINITY),
                "NEG_INFINITY" => Some($float::NEG_INFINITY),
                "NAN" => Some($float::NAN),
                _ => None,
            }
        }
    };
}
consts!(constant64_consts, f64, [PI TAU E SQRT_2 LN_2 LN_10 LOG2_E LOG10_E FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6 FRAC_PI_8 FRAC_1_PI FRAC_2_PI FRAC_1_SQRT_2 FRAC_2_SQRT_PI]);
consts!(constant32_consts, f32, [PI TAU E SQRT_2 LN_2 LN_10 LOG2_E LOG10_E FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6 FRAC_PI_8 FRAC_1_PI FRAC_2_PI FRAC_1_SQRT_2 FRAC_2_SQRT_PI]);
limits!(constant64, f64);
limits!(constant32, f32);
