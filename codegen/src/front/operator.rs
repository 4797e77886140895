//! Operators.

use quote::ToTokens;
use syn::{BinOp, Expr, ExprBinary, Lit, UnOp};

use super::Front;
use super::cast::is_literal;
use super::infer::Kind;
use super::report::tidy;
use super::scope::{Integer, Val};
use crate::ir::{Binary, BinaryKind, Expr as IrExpr, ExprKind, Family, Id, Offset, Place, Type, Unary};
use crate::verify::MAX_OFFSET;

impl Front {
    pub(super) fn unary(&mut self, unary: &syn::ExprUnary) -> Val {
        if let (UnOp::Neg(_), Expr::Lit(literal)) = (&unary.op, &*unary.expr)
            && let Lit::Int(_) = &literal.lit
        {
            return match self.literal(&literal.lit, true) {
                Val::Integer(integer) => Val::Integer(Integer { value: -integer.value, ..integer }),
                Val::Number(number) => self.negated(number, unary),
                other => other,
            };
        }
        let value = self.eval(&unary.expr);
        match (&unary.op, value) {
            (_, Val::Poison) => Val::Poison,
            (UnOp::Deref(_), value) => value,
            (UnOp::Neg(_), Val::Offset(Offset(cells))) => Val::Offset(Offset(cells.map(|cells| -cells))),
            (UnOp::Neg(_), Val::Integer(integer)) => match self.integer(Some(-integer.value), integer.ty, unary) {
                Val::Integer(negated) => Val::Integer(Integer { quotient: integer.quotient, ..negated }),
                other => other,
            },
            (UnOp::Neg(_), Val::Number(number)) => self.negated(number, unary),
            (UnOp::Not(_), Val::Truth(truth)) => Val::Truth(!truth),
            (UnOp::Not(_), Val::Integer(Integer { value, ty: Some(ty), .. })) => {
                Val::Integer(Integer::new(ty.wrap(!value), Some(ty)))
            }
            (_, Val::Fold(fold)) => {
                let op = tidy(&unary.op);
                let help = format!("fold what it gives: `{}({op}x)`", fold.name());
                self.fold_refused(unary, format!("`{op}` of {}", fold.describe()), help)
            }
            (UnOp::Not(_), value @ (Val::Integer(_) | Val::Number(_))) => self.inverted(value, unary),
            (UnOp::Neg(_), value) => self.poison(unary, format!("{} can't be negated", value.describe()), ""),
            (UnOp::Not(_), value) => {
                self.poison(unary, format!("`!` of {}", value.describe()), "`!` takes a comparison or an integer")
            }
            (_, value) => self.poison(unary, format!("this operator does not take {}", value.describe()), ""),
        }
    }

    /// `!` of a truth value or of the bits of an integer.
    fn inverted(&mut self, value: Val, tokens: &syn::ExprUnary) -> Val {
        let place = self.reporter.place(tokens);
        let Some(number) = self.number(&value, None, place) else { return Val::Poison };
        match self.types.kind_of(number) {
            Kind::Float => self.poison(tokens, "`!` of a float", "`!` takes a comparison or an integer"),
            Kind::Bool | Kind::Integer => Val::Number(self.unary_of(Unary::Not, number, place)),
        }
    }

    fn negated(&mut self, number: Id<IrExpr>, tokens: &syn::ExprUnary) -> Val {
        let place = self.reporter.place(tokens);
        let ty = self.types.exprs[number.index()];
        match self.types.get(ty) {
            Some(Type::Bool) => return self.poison(tokens, "a bool can't be negated by `-`", "write `!c`"),
            Some(ty) if ty.family() == Family::Unsigned => {
                let message = format!("an unsigned integer (`{ty}`) can't be negated");
                return self.poison(
                    tokens,
                    message,
                    "convert it to a signed type first, or use `0 - x` to wrap around",
                );
            }
            _ => {}
        }
        if let Some(digits) = self.types.digits(number) {
            let negative = format!("-{digits}");
            return Val::Number(self.float_literal(&negative, ty, place));
        }
        Val::Number(self.unary_of(Unary::Neg, number, place))
    }

    pub(super) fn binary(&mut self, binary: &ExprBinary, whole: &Expr) -> Val {
        let Some((op, assigns)) = operator(&binary.op) else {
            return self.poison(&binary.op, format!("`{}` is not part of the stencil language", tidy(&binary.op)), "");
        };
        if op.kind() == BinaryKind::Logic {
            return self.logic(op, binary);
        }
        if let Some(power) = raised(binary) {
            return self.power_sign(&binary.left, power, &tidy(&binary.op).replace('*', "**"), binary);
        }
        let (left, right) = self.eval_pair(&binary.left, &binary.right);
        let value = match (&left, &right) {
            (Val::Number(number), Val::Number(_) | Val::Integer(_))
                if op == Binary::BitXor && self.types.kind_of(*number) == Kind::Float =>
            {
                self.power_sign(&binary.left, &binary.right, &tidy(&binary.op), binary)
            }
            (Val::Number(a), Val::Number(b)) if self.kinds(*a, *b) == [Kind::Integer, Kind::Float] => {
                self.variable_meets_float(*b, &binary.left)
            }
            (Val::Number(a), Val::Number(b)) if self.kinds(*a, *b) == [Kind::Float, Kind::Integer] => {
                self.variable_meets_float(*a, &binary.right)
            }
            (Val::Number(a), Val::Number(b)) if self.differ(op, *a, *b) => self.types_meet(*a, *b, binary),
            (Val::Offset(offset), Val::Integer(integer)) if matches!(op, Binary::Add | Binary::Sub) => {
                self.offset_meets_integer(*offset, *integer, op, binary)
            }
            (Val::Integer(integer), Val::Number(number)) if self.types.kind_of(*number) == Kind::Float => {
                self.integer_meets_float(*integer, *number, &binary.left)
            }
            (Val::Number(number), Val::Integer(integer)) if self.types.kind_of(*number) == Kind::Float => {
                self.integer_meets_float(*integer, *number, &binary.right)
            }
            _ => self.operate(op, left, right, binary),
        };
        let value = match value {
            Val::Integer(integer) if op == Binary::Div && !assigns => {
                let ty = self.written_float();
                let help = format!(
                    "`{}` is a division of integers, without a fraction: write `{} / {}`",
                    tidy(binary),
                    as_float(&binary.left, ty),
                    as_float(&binary.right, ty)
                );
                Val::Integer(Integer { quotient: Some(self.quotients.remember(help)), ..integer })
            }
            value => value,
        };
        match assigns {
            true => self.assign(&binary.left, value, whole),
            false => value,
        }
    }

    /// The float that the stencil most likely computes with: that of its fields.
    fn written_float(&self) -> &'static str {
        let mut types = self.kernel.fields.iter().map(|field| field.ty).chain(self.kernel.params.iter().map(|p| p.ty));
        types.find(|ty| ty.is_float()).unwrap_or(Type::F64).name()
    }

    fn kinds(&self, a: Id<IrExpr>, b: Id<IrExpr>) -> [Kind; 2] {
        [a, b].map(|number| self.types.kind_of(number))
    }

    /// Whether two numbers of one kind have two types where they must have one.
    fn differ(&self, op: Binary, a: Id<IrExpr>, b: Id<IrExpr>) -> bool {
        let types = [a, b].map(|number| self.types.get(self.types.exprs[number.index()]));
        let [kind, other] = self.kinds(a, b);
        op.kind() != BinaryKind::Shift && kind == other && matches!(types, [Some(a), Some(b)] if a != b)
    }

    /// `f32` beside `f64`: the narrower one is to be converted.
    fn types_meet(&mut self, a: Id<IrExpr>, b: Id<IrExpr>, binary: &ExprBinary) -> Val {
        let [left, right] = [a, b].map(|number| self.types.or_default(self.types.exprs[number.index()]));
        let (narrow, wide) = match left.bytes() <= right.bytes() {
            true => (&*binary.left, right),
            false => (&*binary.right, left),
        };
        let help = format!("both sides must have one type: `{} as {wide}`", operand(narrow));
        self.poison(binary, format!("`{left}` meets `{right}`"), help)
    }

    /// `x ** 2` or `x ^ 2` of a float.
    fn power_sign(&mut self, base: &Expr, power: &Expr, sign: &str, tokens: &ExprBinary) -> Val {
        let base = operand(base);
        let method = match self.eval(power) {
            Val::Integer(_) => "powi",
            _ => "powf",
        };
        let message = match sign.starts_with('^') {
            true => "`^` of a float: in Rust it is the exclusive or of bits".to_owned(),
            false => format!("`{sign}` is not an operator of Rust"),
        };
        self.poison(tokens, message, format!("a power is `{base}.{method}({})`", tidy(power)))
    }

    /// An integer known at run time beside a float: said at the integer.
    fn variable_meets_float(&mut self, float: Id<IrExpr>, tokens: &Expr) -> Val {
        let ty = self.types.or_default(self.types.exprs[float.index()]);
        self.poison(tokens, "this integer meets a float", format!("convert it: `{} as {ty}`", operand(tokens)))
    }

    /// `X + 1`.
    fn offset_meets_integer(&mut self, offset: Offset, integer: Integer, op: Binary, tokens: &ExprBinary) -> Val {
        let message = format!("`{}` of an offset and an integer", op.symbol());
        let along: Vec<usize> = (0..3).filter(|axis| offset.0[*axis] != 0).collect();
        let cells = if op == Binary::Add { integer.value } else { -integer.value };
        let help = match (along.as_slice(), i32::try_from(cells)) {
            ([axis], Ok(cells)) if cells.abs() <= MAX_OFFSET => {
                let mut moved = offset;
                moved.0[*axis] += cells;
                format!("an integer has no direction: write `{moved}`")
            }
            _ => "an integer has no direction: write `X + 2*Y`".to_owned(),
        };
        self.poison(tokens, message, help)
    }

    /// An integer known at compile time beside a float: said at the integer.
    pub(super) fn integer_meets_float(&mut self, integer: Integer, float: Id<IrExpr>, tokens: &Expr) -> Val {
        let (value, ty) = (integer.value, self.types.or_default(self.types.exprs[float.index()]));
        let help = match tokens {
            _ if is_literal(tokens) => format!("write `{value}.0`"),
            _ if let Some(help) = self.quotients.help(integer) => help,
            Expr::Path(name) if self.counters.contains(&tidy(name)) => format!("convert it: `{} as {ty}`", tidy(name)),
            Expr::Path(name) => {
                let name = tidy(name);
                format!("write `{value}.0` where `{name}` gets its value, or convert it here: `{name} as {ty}`")
            }
            Expr::Paren(whole) => format!("convert it: `{} as {ty}`", tidy(whole)),
            other => format!("convert it: `({}) as {ty}`", tidy(other)),
        };
        self.poison(tokens, format!("the integer {value} meets a float"), help)
    }

    /// `a && b` and `a || b`; what is known of `a` may decide.
    fn logic(&mut self, op: Binary, binary: &ExprBinary) -> Val {
        let left = self.eval(&binary.left);
        if let Val::Truth(left) = left {
            return match left == (op == Binary::Or) {
                true => Val::Truth(left),
                false => match self.eval(&binary.right) {
                    Val::Number(right) if self.types.kind_of(right) == Kind::Bool => Val::Number(right),
                    right => self.operate(op, Val::Truth(left), right, binary),
                },
            };
        }
        let mark = self.assigned.len();
        let right = self.under_condition("part", |front| front.eval(&binary.right)).straight();
        match right {
            Some((stmts, right)) if self.assigned.len() == mark => {
                // It only computes, so it may as well always be computed.
                stmts.into_iter().for_each(|stmt| self.emit(stmt));
                self.operate(op, left, right, binary)
            }
            _ => {
                let message = format!("the right side of `{}` assigns or returns", op.symbol());
                self.poison(&*binary.right, message, "it runs only if the left side asks for it: write it as an `if`")
            }
        }
    }

    /// An operation on two values.
    pub(super) fn operate(&mut self, op: Binary, left: Val, right: Val, tokens: &dyn ToTokens) -> Val {
        match (left, right) {
            (Val::Poison, _) | (_, Val::Poison) => Val::Poison,
            (Val::Fold(fold), _) | (_, Val::Fold(fold)) => {
                let message = format!("`{}` of {}", op.symbol(), fold.describe());
                let help = format!("compute first and fold at last: `{}(a {} b)`", fold.name(), op.symbol());
                self.fold_refused(tokens, message, help)
            }
            (Val::Integer(a), Val::Integer(b)) => self.integers(op, a, b, tokens),
            (Val::Offset(a), Val::Offset(b)) => match op {
                Binary::Add => self.offset(a, b, |a, b| a.checked_add(b), tokens),
                Binary::Sub => self.offset(a, b, |a, b| a.checked_sub(b), tokens),
                Binary::Eq => Val::Truth(a == b),
                Binary::Ne => Val::Truth(a != b),
                _ => self.poison(
                    tokens,
                    format!("`{}` of two offsets", op.symbol()),
                    "offsets are added, subtracted and multiplied by integers: `2*X - Y`",
                ),
            },
            (Val::Integer(n), Val::Offset(offset)) | (Val::Offset(offset), Val::Integer(n)) if op == Binary::Mul => {
                let Ok(n) = i32::try_from(n.value) else {
                    return self.poison(
                        tokens,
                        format!("the offset is farther than {MAX_OFFSET} cells"),
                        "read nearer cells",
                    );
                };
                self.offset(offset, Offset([n; 3]), |a, n| a.checked_mul(n), tokens)
            }
            (Val::Offset(_), Val::Integer(_) | Val::Number(_)) | (Val::Integer(_) | Val::Number(_), Val::Offset(_))
                if matches!(op, Binary::Div | Binary::Rem) =>
            {
                let help = "offsets are whole cells: there is no value between two. The value half a cell further along X is the \
                            mean `0.5 * (u[HERE] + u[X])`; on a staggered grid it is a field of its own";
                self.poison(tokens, format!("`{}` of an offset", op.symbol()), help)
            }
            (Val::Integer(_), Val::Offset(_)) | (Val::Offset(_), Val::Integer(_)) => self.poison(
                tokens,
                format!("`{}` of an offset and an integer", op.symbol()),
                "offsets are added, subtracted and multiplied by integers: `2*X - Y`",
            ),
            (Val::Number(_), Val::Offset(_)) | (Val::Offset(_), Val::Number(_)) => self.poison(
                tokens,
                "an offset meets a number that is only known at run time or is a float",
                "offsets must be known at compile time: use integer literals, `const`s and `for` variables, as in `2*X`",
            ),
            (Val::Truth(a), Val::Truth(b)) => match op {
                Binary::And | Binary::BitAnd => Val::Truth(a & b),
                Binary::Or | Binary::BitOr => Val::Truth(a | b),
                Binary::Eq => Val::Truth(a == b),
                Binary::Ne | Binary::BitXor => Val::Truth(a != b),
                _ => self.poison(
                    tokens,
                    format!("`{}` of two bools", op.symbol()),
                    "bools are combined by `&&`, `||`, `^`, `==` and `!=`",
                ),
            },
            // `x && true` is `x`.
            (Val::Number(number), Val::Truth(truth)) | (Val::Truth(truth), Val::Number(number))
                if op.kind() == BinaryKind::Logic && self.types.kind_of(number) == Kind::Bool =>
            {
                if truth == (op == Binary::Or) { Val::Truth(truth) } else { Val::Number(number) }
            }
            (Val::Tuple(a), Val::Tuple(b)) if a.len() == b.len() && matches!(op, Binary::Eq | Binary::Ne) => {
                self.compare_tuples(op, a, b, tokens)
            }
            (
                left @ (Val::Number(_) | Val::Truth(_) | Val::Integer(_)),
                right @ (Val::Number(_) | Val::Truth(_) | Val::Integer(_)),
            ) => self.mixed(op, &left, &right, tokens),
            (Val::Field(field), _) | (_, Val::Field(field)) => {
                let name = &self.kernel.fields[field].name;
                let message = format!("`{}` of the whole field `{name}`", op.symbol());
                let help = format!("read it at a point: `{name}[HERE]`");
                self.poison(tokens, message, help)
            }
            (left, right) => {
                let message = format!("`{}` of {} and {}", op.symbol(), left.describe(), right.describe());
                self.poison(tokens, message, "arithmetic is between numbers")
            }
        }
    }

    /// `(i, j) == (0, 0)`.
    fn compare_tuples(&mut self, op: Binary, a: Vec<Val>, b: Vec<Val>, tokens: &dyn ToTokens) -> Val {
        let (all, start) = if op == Binary::Eq { (Binary::And, true) } else { (Binary::Or, false) };
        a.into_iter().zip(b).fold(Val::Truth(start), |result, (a, b)| {
            let part = self.operate(op, a, b, tokens);
            self.operate(all, result, part, tokens)
        })
    }

    /// An operation of which at least one side is only known at run time.
    fn mixed(&mut self, op: Binary, left: &Val, right: &Val, tokens: &dyn ToTokens) -> Val {
        let place = self.reporter.place(&tokens.to_token_stream());
        if let (Val::Integer(n), Val::Number(number)) | (Val::Number(number), Val::Integer(n)) = (left, right)
            && self.types.kind_of(*number) == Kind::Float
        {
            let message = format!("the integer {} meets a float", n.value);
            return self.poison(tokens, message, format!("write `{}.0`, or convert it: `n as f64`", n.value));
        }
        if op.kind() == BinaryKind::Shift {
            return self.shift(op, left, right, tokens, place);
        }
        if let (Val::Integer(_), other) | (other, Val::Integer(_)) = (left, right)
            && self.kind(other) == Kind::Bool
        {
            return self.bool_refused(op, false, tokens);
        }
        match self.number_pair(left, right, place) {
            Some((left, right)) => self.numbers(op, left, right, tokens, place),
            None => Val::Poison,
        }
    }

    fn kind(&self, value: &Val) -> Kind {
        match value {
            Val::Number(number) => self.types.kind_of(*number),
            Val::Integer(_) => Kind::Integer,
            _ => Kind::Bool,
        }
    }

    /// The number of bits is of any integer type, as in Rust.
    fn shift(&mut self, op: Binary, left: &Val, right: &Val, tokens: &dyn ToTokens, place: Place) -> Val {
        if [left, right].into_iter().any(|side| self.kind(side) != Kind::Integer) {
            let message = format!("`{}` of what is no integer", op.symbol());
            return self.poison(tokens, message, "integers are shifted by integers: `(x >> 3) & 1`");
        }
        let Some(left) = self.number(left, None, place) else { return Val::Poison };
        let ty = self.types.exprs[left.index()];
        let bits = match right {
            Val::Integer(Integer { value, .. }) => Val::Integer(Integer::new(*value, None)),
            other => other.clone(),
        };
        let Some(mut bits) = self.number(&bits, Some(ty), place) else { return Val::Poison };
        if !self.types.same(ty, self.types.exprs[bits.index()]) {
            bits = self.expr_of(ExprKind::Cast(bits), ty, place);
        }
        Val::Number(self.expr_of(ExprKind::Binary(op, left, bits), ty, place))
    }

    fn bool_refused(&mut self, op: Binary, both: bool, tokens: &dyn ToTokens) -> Val {
        let choose = "choose a number with `if c { 1.0 } else { 0.0 }`, or convert it: `c as i32`";
        let (message, help) = match (both, op.kind()) {
            (true, _) => (format!("`{}` of two bools", op.symbol()), choose),
            (false, BinaryKind::Logic) => {
                (format!("`{}` of a number", op.symbol()), "compare it first: `a > 0.0 && b > 0.0`")
            }
            (false, _) => (format!("`{}` of a bool and a number", op.symbol()), choose),
        };
        self.poison(tokens, message, help)
    }

    fn numbers(&mut self, op: Binary, left: Id<IrExpr>, right: Id<IrExpr>, tokens: &dyn ToTokens, place: Place) -> Val {
        let bools = [left, right].map(|number| self.types.kind_of(number) == Kind::Bool);
        let takes_bools = match op.kind() {
            BinaryKind::Logic => true,
            BinaryKind::Arithmetic | BinaryKind::Shift => false,
            BinaryKind::Bitwise => bools == [true; 2],
            BinaryKind::Comparison => bools == [true; 2] && matches!(op, Binary::Eq | Binary::Ne),
        };
        if bools != [takes_bools; 2] {
            return self.bool_refused(op, bools == [true; 2], tokens);
        }
        if op.kind() == BinaryKind::Bitwise && self.types.kind_of(left) == Kind::Float {
            let help = "bits are those of integers: `x.to_bits()` gives those of a float, and conditions are combined by `&&` and \
                        `||`";
            return self.poison(tokens, format!("`{}` of a float", op.symbol()), help);
        }
        if !self.unify(self.types.exprs[left.index()], self.types.exprs[right.index()], place) {
            return Val::Poison;
        }
        Val::Number(self.binary_of(op, left, right, place))
    }

    fn offset(&mut self, a: Offset, b: Offset, op: impl Fn(i32, i32) -> Option<i32>, tokens: &dyn ToTokens) -> Val {
        let mut cells = [0; 3];
        for (cells, (a, b)) in cells.iter_mut().zip(a.0.into_iter().zip(b.0)) {
            match op(a, b) {
                Some(sum) if sum.abs() <= MAX_OFFSET => *cells = sum,
                _ => {
                    return self.poison(
                        tokens,
                        format!("the offset is farther than {MAX_OFFSET} cells"),
                        "read nearer cells",
                    );
                }
            }
        }
        Val::Offset(Offset(cells))
    }
}

/// An expression as it stands in front of `as` or a method.
pub(super) fn operand(tokens: &Expr) -> String {
    match tokens {
        Expr::Binary(_) | Expr::Unary(_) | Expr::Cast(_) | Expr::If(_) => format!("({})", tidy(tokens)),
        other => tidy(other),
    }
}

/// The exponent in `x ** 2`, which Rust reads as `x * (*2)`.
fn raised(binary: &ExprBinary) -> Option<&Expr> {
    match (&binary.op, &*binary.right) {
        (BinOp::Mul(times), Expr::Unary(unary)) => match &unary.op {
            UnOp::Deref(star) if times.span.end() == star.span.start() => Some(&*unary.expr),
            _ => None,
        },
        _ => None,
    }
}

/// An expression of integers as it is written for floats: `(2.0 * n as f64)` of `(2 * n)`.
fn as_float(tokens: &Expr, ty: &str) -> String {
    match tokens {
        Expr::Paren(inner) => format!("({})", as_float(&inner.expr, ty)),
        Expr::Group(inner) => as_float(&inner.expr, ty),
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => format!("{}.0", int.base10_digits()),
            other => tidy(other),
        },
        Expr::Unary(inner) if matches!(inner.op, UnOp::Neg(_)) => format!("-{}", as_float(&inner.expr, ty)),
        Expr::Binary(binary) => {
            format!("{} {} {}", as_float(&binary.left, ty), tidy(&binary.op), as_float(&binary.right, ty))
        }
        other => format!("{} as {ty}", operand(other)),
    }
}

/// The operation, and whether it assigns its result; `None` for operators that the language does not have.
fn operator(op: &BinOp) -> Option<(Binary, bool)> {
    Some(match op {
        BinOp::Add(_) => (Binary::Add, false),
        BinOp::Sub(_) => (Binary::Sub, false),
        BinOp::Mul(_) => (Binary::Mul, false),
        BinOp::Div(_) => (Binary::Div, false),
        BinOp::Rem(_) => (Binary::Rem, false),
        BinOp::BitAnd(_) => (Binary::BitAnd, false),
        BinOp::BitOr(_) => (Binary::BitOr, false),
        BinOp::BitXor(_) => (Binary::BitXor, false),
        BinOp::Shl(_) => (Binary::Shl, false),
        BinOp::Shr(_) => (Binary::Shr, false),
        BinOp::Lt(_) => (Binary::Lt, false),
        BinOp::Le(_) => (Binary::Le, false),
        BinOp::Gt(_) => (Binary::Gt, false),
        BinOp::Ge(_) => (Binary::Ge, false),
        BinOp::Eq(_) => (Binary::Eq, false),
        BinOp::Ne(_) => (Binary::Ne, false),
        BinOp::And(_) => (Binary::And, false),
        BinOp::Or(_) => (Binary::Or, false),
        BinOp::AddAssign(_) => (Binary::Add, true),
        BinOp::SubAssign(_) => (Binary::Sub, true),
        BinOp::MulAssign(_) => (Binary::Mul, true),
        BinOp::DivAssign(_) => (Binary::Div, true),
        BinOp::RemAssign(_) => (Binary::Rem, true),
        BinOp::BitAndAssign(_) => (Binary::BitAnd, true),
        BinOp::BitOrAssign(_) => (Binary::BitOr, true),
        BinOp::BitXorAssign(_) => (Binary::BitXor, true),
        BinOp::ShlAssign(_) => (Binary::Shl, true),
        BinOp::ShrAssign(_) => (Binary::Shr, true),
        _ => return None,
    })
}
