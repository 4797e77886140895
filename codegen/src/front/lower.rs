//! Building expressions, and the functions that are made of simpler ones, exactly as the standard library defines them.

use super::Front;
use super::infer::Kind;
use crate::ir::{Binary, BinaryKind, Expr, ExprKind, Family, Function, Id, Place, Stmt, Type, Unary, Value};

/// An expression of the kernel.
type Number = Id<Expr>;

impl Front {
    pub(super) fn unary_of(&mut self, op: Unary, a: Number, place: Place) -> Number {
        let ty = self.types.exprs[a.index()];
        self.expr_of(ExprKind::Unary(op, a), ty, place)
    }

    /// An operation on two numbers of one type.
    pub(super) fn binary_of(&mut self, op: Binary, a: Number, b: Number, place: Place) -> Number {
        let ty = match op.kind() {
            BinaryKind::Arithmetic | BinaryKind::Bitwise | BinaryKind::Shift => self.types.exprs[a.index()],
            BinaryKind::Comparison | BinaryKind::Logic => self.types.known(Type::Bool),
        };
        self.expr_of(ExprKind::Binary(op, a, b), ty, place)
    }

    /// A function of numbers of one type that gives that type.
    fn call_of(&mut self, function: Function, arguments: &[Number], place: Place) -> Number {
        let ty = self.types.exprs[arguments[0].index()];
        self.expr_of(ExprKind::Call(function, arguments.to_vec()), ty, place)
    }

    fn cast_of(&mut self, a: Number, ty: Type, place: Place) -> Number {
        if self.types.get(self.types.exprs[a.index()]) == Some(ty) {
            return a;
        }
        let ty = self.types.known(ty);
        self.expr_of(ExprKind::Cast(a), ty, place)
    }

    /// A small whole number of the type of `like`.
    fn whole(&mut self, value: i8, like: Number, place: Place) -> Number {
        let ty = self.types.exprs[like.index()];
        match self.types.kind(ty) {
            Kind::Float => self.float_literal(&format!("{value}.0"), ty, place),
            Kind::Integer | Kind::Bool => {
                let literal = self.expr_of(ExprKind::Literal(Value::I32(0)), ty, place);
                self.types.integer_literal(literal, value.into());
                literal
            }
        }
    }

    /// A float literal of the type of `like`.
    fn constant_like(&mut self, value: f64, narrow: f32, like: Number, place: Place) -> Number {
        let ty = self.types.exprs[like.index()];
        let value = match self.types.decide(ty) {
            Type::F32 => Value::F32(narrow),
            _ => Value::F64(value),
        };
        self.expr_of(ExprKind::Literal(value), ty, place)
    }

    /// `if condition { yes } else { no }`.
    fn select(&mut self, condition: Number, yes: Number, no: Number, name: &str, place: Place) -> Number {
        let ty = self.types.exprs[yes.index()];
        let local = self.new_local(name, ty, None);
        self.emit(Stmt::Let { local, value: None, place });
        let assign = |value| vec![Stmt::Assign { local, value, place }];
        self.emit(Stmt::If { condition, then: assign(yes), otherwise: assign(no), place });
        self.expr_of(ExprKind::Local(local), ty, place)
    }

    /// The receiver under a name, since it is used more than once.
    fn kept(&mut self, a: Number, name: &str, place: Place) -> Number {
        self.named(a, name, place)
    }

    /// `a.powi(n)` and `a.pow(n)`: squares, multiplied from the lowest bit of `n` on; the first one needed starts the product.
    pub(super) fn power(&mut self, a: Number, exponent: i32, place: Place) -> Number {
        let mut left = exponent.unsigned_abs();
        let mut square = self.kept(a, "square", place);
        let mut product = None;
        while left != 0 {
            if left & 1 == 1 {
                product = Some(match product {
                    None => square,
                    Some(product) => self.binary_of(Binary::Mul, product, square, place),
                });
            }
            left >>= 1;
            if left != 0 {
                square = self.binary_of(Binary::Mul, square, square, place);
                square = self.kept(square, "square", place);
            }
        }
        match product {
            None => self.whole(1, a, place),
            Some(product) if exponent < 0 => {
                let one = self.whole(1, a, place);
                self.binary_of(Binary::Div, one, product, place)
            }
            Some(product) => product,
        }
    }

    /// A composite method of floats; `None` when there is none of this name and number of arguments.
    pub(super) fn float_composite(&mut self, name: &str, a: Number, rest: &[Number], place: Place) -> Option<Number> {
        const PER_DEGREE: f32 = std::f32::consts::PI / 180.0;
        const PER_RADIAN: f32 = 57.295_78;
        let op = |front: &mut Self, op, a, b| front.binary_of(op, a, b, place);
        Some(match (name, rest) {
            ("recip", []) => {
                let one = self.whole(1, a, place);
                op(self, Binary::Div, one, a)
            }
            ("fract", []) => {
                let a = self.kept(a, "whole", place);
                let whole = self.call_of(Function::Trunc, &[a], place);
                op(self, Binary::Sub, a, whole)
            }
            ("signum", []) => {
                let a = self.kept(a, "signed", place);
                let (one, not_a_number) = (self.whole(1, a, place), self.constant_like(f64::NAN, f32::NAN, a, place));
                let sign = self.call_of(Function::Copysign, &[one, a], place);
                let differs = op(self, Binary::Ne, a, a);
                self.select(differs, not_a_number, sign, "sign", place)
            }
            ("clamp", [low, high]) => {
                let a = self.kept(a, "clamped", place);
                let (low, high) = (self.kept(*low, "low", place), self.kept(*high, "high", place));
                let below = op(self, Binary::Lt, a, low);
                let raised = self.select(below, low, a, "clamped", place);
                let above = op(self, Binary::Gt, raised, high);
                self.select(above, high, raised, "clamped", place)
            }
            ("rem_euclid", [b]) => self.euclidean_remainder(a, *b, place),
            ("div_euclid", [b]) => {
                let (a, b) = (self.kept(a, "dividend", place), self.kept(*b, "divisor", place));
                let quotient = op(self, Binary::Div, a, b);
                let quotient = self.call_of(Function::Trunc, &[quotient], place);
                self.euclidean(a, b, quotient, place)
            }
            ("is_nan", []) => {
                let a = self.kept(a, "checked", place);
                op(self, Binary::Ne, a, a)
            }
            ("is_finite", []) => self.against_infinity(Binary::Lt, a, place),
            ("is_infinite", []) => self.against_infinity(Binary::Eq, a, place),
            ("is_sign_negative" | "is_sign_positive", []) => {
                let (one, zero) = (self.whole(1, a, place), self.whole(0, a, place));
                let sign = self.call_of(Function::Copysign, &[one, a], place);
                op(self, if name == "is_sign_negative" { Binary::Lt } else { Binary::Gt }, sign, zero)
            }
            ("to_degrees", []) => {
                let factor = self.constant_like(180.0 / std::f64::consts::PI, PER_RADIAN, a, place);
                op(self, Binary::Mul, a, factor)
            }
            ("to_radians", []) => {
                let factor = self.constant_like(std::f64::consts::PI / 180.0, PER_DEGREE, a, place);
                op(self, Binary::Mul, a, factor)
            }
            ("log", [base]) => {
                let (a, base) = (self.call_of(Function::Ln, &[a], place), self.call_of(Function::Ln, &[*base], place));
                op(self, Binary::Div, a, base)
            }
            _ => return None,
        })
    }

    fn against_infinity(&mut self, op: Binary, a: Number, place: Place) -> Number {
        let size = self.call_of(Function::Abs, &[a], place);
        let infinity = self.constant_like(f64::INFINITY, f32::INFINITY, a, place);
        self.binary_of(op, size, infinity, place)
    }

    /// The remainder that is not negative, of floats and signed integers alike.
    fn euclidean_remainder(&mut self, a: Number, b: Number, place: Place) -> Number {
        let b = self.kept(b, "divisor", place);
        let remainder = self.binary_of(Binary::Rem, a, b, place);
        let remainder = self.kept(remainder, "remainder", place);
        let (zero, size) = (self.whole(0, b, place), self.call_of(Function::Abs, &[b], place));
        let negative = self.binary_of(Binary::Lt, remainder, zero, place);
        let lifted = self.binary_of(Binary::Add, remainder, size, place);
        self.select(negative, lifted, remainder, "remainder", place)
    }

    /// The quotient that leaves no negative remainder, from the one rounded towards zero.
    fn euclidean(&mut self, a: Number, b: Number, quotient: Number, place: Place) -> Number {
        let quotient = self.kept(quotient, "quotient", place);
        let (zero, one) = (self.whole(0, b, place), self.whole(1, b, place));
        let remainder = self.binary_of(Binary::Rem, a, b, place);
        let negative = self.binary_of(Binary::Lt, remainder, zero, place);
        let upwards = self.binary_of(Binary::Gt, b, zero, place);
        let (less, more) =
            (self.binary_of(Binary::Sub, quotient, one, place), self.binary_of(Binary::Add, quotient, one, place));
        let away = self.select(upwards, less, more, "quotient", place);
        self.select(negative, away, quotient, "quotient", place)
    }

    /// A composite method of integers; `None` when there is none of this name and number of arguments.
    pub(super) fn integer_composite(&mut self, name: &str, a: Number, rest: &[Number], place: Place) -> Option<Number> {
        let var = self.types.exprs[a.index()];
        let op = |front: &mut Self, op, a, b| front.binary_of(op, a, b, place);
        Some(match (name, rest) {
            ("wrapping_add", [b]) => op(self, Binary::Add, a, *b),
            ("wrapping_sub", [b]) => op(self, Binary::Sub, a, *b),
            ("wrapping_mul", [b]) => op(self, Binary::Mul, a, *b),
            ("wrapping_neg", []) => {
                let zero = self.whole(0, a, place);
                op(self, Binary::Sub, zero, a)
            }
            ("wrapping_abs", []) => self.call_of(Function::Abs, &[a], place),
            ("saturating_add", [b]) => self.saturating(true, a, *b, place),
            ("saturating_sub", [b]) => self.saturating(false, a, *b, place),
            ("is_multiple_of", [b]) => {
                let (a, b) = (self.kept(a, "multiple", place), self.kept(*b, "divisor", place));
                let (zero, rest) = (self.whole(0, b, place), op(self, Binary::Rem, a, b));
                // Of zero only zero is a multiple; the remainder by it is 0 here.
                let (divides, by_none) = (op(self, Binary::Eq, rest, zero), op(self, Binary::Ne, b, zero));
                let is_none = op(self, Binary::Eq, a, zero);
                let allowed = op(self, Binary::Or, by_none, is_none);
                op(self, Binary::And, divides, allowed)
            }
            ("is_power_of_two", []) => {
                let count = self.bits_of(Function::CountOnes, a, place);
                let one = self.whole(1, count, place);
                op(self, Binary::Eq, count, one)
            }
            ("div_ceil", [b]) => {
                let (a, b, ty) =
                    (self.kept(a, "dividend", place), self.kept(*b, "divisor", place), self.types.decide(var));
                let (quotient, rest) = (op(self, Binary::Div, a, b), op(self, Binary::Rem, a, b));
                let zero = self.whole(0, b, place);
                let more = op(self, Binary::Ne, rest, zero);
                let more = self.cast_of(more, ty, place);
                op(self, Binary::Add, quotient, more)
            }
            ("count_zeros", []) => {
                let inverted = self.unary_of(Unary::Not, a, place);
                self.bits_of(Function::CountOnes, inverted, place)
            }
            ("trailing_zeros", []) => {
                // The bits below the lowest one, which become ones by counting down.
                let a = self.kept(a, "counted", place);
                let (one, inverted) = (self.whole(1, a, place), self.unary_of(Unary::Not, a, place));
                let less = op(self, Binary::Sub, a, one);
                let below = op(self, Binary::BitAnd, inverted, less);
                self.bits_of(Function::CountOnes, below, place)
            }
            ("leading_zeros", []) => {
                // All bits from the highest one down become ones; the others are counted.
                let unsigned = self.unsigned(var);
                let mut filled = self.cast_of(a, unsigned, place);
                for step in [1, 2, 4, 8, 16, 32].into_iter().filter(|step| *step < 8 * unsigned.bytes() as i8) {
                    filled = self.kept(filled, "filled", place);
                    let step = self.whole(step, filled, place);
                    let shifted = op(self, Binary::Shr, filled, step);
                    filled = op(self, Binary::BitOr, filled, shifted);
                }
                let inverted = self.unary_of(Unary::Not, filled, place);
                self.bits_of(Function::CountOnes, inverted, place)
            }
            ("clamp", [low, high]) => {
                let raised = self.call_of(Function::Max, &[a, *low], place);
                self.call_of(Function::Min, &[raised, *high], place)
            }
            ("signum", []) => {
                let a = self.kept(a, "signed", place);
                let (zero, ty) = (self.whole(0, a, place), self.types.decide(var));
                let (above, below) = (op(self, Binary::Gt, a, zero), op(self, Binary::Lt, a, zero));
                let (above, below) = (self.cast_of(above, ty, place), self.cast_of(below, ty, place));
                op(self, Binary::Sub, above, below)
            }
            ("is_positive" | "is_negative", []) => {
                let zero = self.whole(0, a, place);
                op(self, if name == "is_positive" { Binary::Gt } else { Binary::Lt }, a, zero)
            }
            ("abs_diff", [b]) => {
                let (a, b, unsigned) = (self.kept(a, "a", place), self.kept(*b, "b", place), self.unsigned(var));
                let (more, less) =
                    (self.call_of(Function::Max, &[a, b], place), self.call_of(Function::Min, &[a, b], place));
                let (more, less) = (self.cast_of(more, unsigned, place), self.cast_of(less, unsigned, place));
                op(self, Binary::Sub, more, less)
            }
            ("unsigned_abs", []) => {
                let (size, unsigned) = (self.call_of(Function::Abs, &[a], place), self.unsigned(var));
                self.cast_of(size, unsigned, place)
            }
            ("rem_euclid" | "div_euclid", [b]) if self.types.decide(var).family() == Family::Unsigned => {
                op(self, if name == "rem_euclid" { Binary::Rem } else { Binary::Div }, a, *b)
            }
            ("rem_euclid", [b]) => self.euclidean_remainder(a, *b, place),
            ("div_euclid", [b]) => {
                let (a, b) = (self.kept(a, "dividend", place), self.kept(*b, "divisor", place));
                let quotient = op(self, Binary::Div, a, b);
                self.euclidean(a, b, quotient, place)
            }
            _ => return None,
        })
    }

    /// A function of an integer that counts bits.
    fn bits_of(&mut self, function: Function, a: Number, place: Place) -> Number {
        self.types.decide(self.types.exprs[a.index()]);
        let ty = self.types.known(Type::U32);
        self.expr_of(ExprKind::Call(function, vec![a]), ty, place)
    }

    /// `a.rotate_left(bits)`; a shift counts only as many bits as there are.
    pub(super) fn rotated(&mut self, left: bool, a: Number, bits: Number, place: Place) -> Number {
        let ty = self.types.decide(self.types.exprs[a.index()]);
        let unsigned = self.unsigned(self.types.exprs[a.index()]);
        let (a, bits) = (self.cast_of(a, unsigned, place), self.cast_of(bits, unsigned, place));
        let (a, bits) = (self.kept(a, "rotated", place), self.kept(bits, "bits", place));
        let zero = self.whole(0, bits, place);
        let back = self.binary_of(Binary::Sub, zero, bits, place);
        let (one, other) = if left { (Binary::Shl, Binary::Shr) } else { (Binary::Shr, Binary::Shl) };
        let (one, other) = (self.binary_of(one, a, bits, place), self.binary_of(other, a, back, place));
        let rotated = self.binary_of(Binary::BitOr, one, other, place);
        self.cast_of(rotated, ty, place)
    }

    /// `a + b` or `a - b`, at most and at least what the type holds: `b` is limited to what fits beside `a`.
    fn saturating(&mut self, adds: bool, a: Number, b: Number, place: Place) -> Number {
        let a = self.kept(a, "a", place);
        let var = self.types.exprs[a.index()];
        let ty = self.types.decide(var);
        let range = super::scope::IntType::of(ty).expect("it is an integer");
        let literal = |front: &mut Self, value: i128| {
            let literal = front.expr_of(ExprKind::Literal(Value::I32(0)), var, place);
            front.types.integer_literal(literal, value);
            literal
        };
        let (least, most) = range.range();
        let op = if adds { Binary::Add } else { Binary::Sub };
        let b = if !range.signed {
            let room = match adds {
                true => self.unary_of(Unary::Not, a, place),
                false => a,
            };
            self.call_of(Function::Min, &[b, room], place)
        } else {
            // What `b` may be at least and at most, from the part of `a` that limits it.
            let pivot = literal(self, if adds { 0 } else { -1 });
            let (above, below) =
                (self.call_of(Function::Max, &[a, pivot], place), self.call_of(Function::Min, &[a, pivot], place));
            let (least, most) = (literal(self, least), literal(self, most));
            let (low, high) = match adds {
                true => {
                    (self.binary_of(Binary::Sub, least, below, place), self.binary_of(Binary::Sub, most, above, place))
                }
                false => {
                    (self.binary_of(Binary::Sub, above, most, place), self.binary_of(Binary::Sub, below, least, place))
                }
            };
            let raised = self.call_of(Function::Max, &[b, low], place);
            self.call_of(Function::Min, &[raised, high], place)
        };
        self.binary_of(op, a, b, place)
    }

    /// The unsigned type of the same size.
    fn unsigned(&mut self, var: super::infer::TypeVar) -> Type {
        match self.types.decide(var) {
            Type::I64 | Type::U64 => Type::U64,
            Type::I8 | Type::U8 => Type::U8,
            _ => Type::U32,
        }
    }
}
