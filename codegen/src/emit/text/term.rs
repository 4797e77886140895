//! Text of an expression that still knows how tightly it binds and where its lines may be broken.
//!
//! Parentheses appear exactly where the tree would be lost without them, or where gcc or a reader would ask for them:
//! `a - (b - c)`, `-(-a)`, `(a && b) || c`, `(a & b) == c`. The rules suit C and Rust alike.

use std::fmt;

use crate::ir::{Binary, BinaryKind};

/// The widest line.
pub(crate) const COLUMNS: usize = 110;

/// How tightly the outermost operator of a term binds, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// `a || b`
    Or,
    /// `a && b`
    And,
    /// `a < b`, `a == b`
    Comparison,
    /// `a | b`; C ranks this and the next two below comparisons, Rust above: next to one they are in parentheses.
    BitOr,
    /// `a ^ b`
    BitXor,
    /// `a & b`
    BitAnd,
    /// `a << b`, `a >> b`
    Shift,
    /// `a + b`, `a - b`
    Sum,
    /// `a * b`, `a / b`, `a % b`
    Product,
    /// `a as T`; nothing in C.
    As,
    /// `-a`, `!a`, `(T)a`, negative literals
    Prefix,
    /// Names, literals, calls, `a[b]`, anything in parentheses
    Whole,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    /// A space, or the end of a line; the deeper, the less welcome a break is.
    Gap {
        depth: usize,
    },
}

/// The text of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    level: Level,
    pieces: Vec<Piece>,
    /// Another text for the same bits, see [`Term::with_bits`].
    bits: Option<Box<Term>>,
}

impl Level {
    /// Whether the operator works on bits.
    fn is_of_bits(self) -> bool {
        (Level::BitOr..=Level::Shift).contains(&self)
    }
}

impl Term {
    /// A term that is not broken over lines.
    pub(crate) fn new(level: Level, text: impl Into<String>) -> Self {
        Term::of(level, vec![Piece::Text(text.into())])
    }

    fn of(level: Level, pieces: Vec<Piece>) -> Self {
        Term { level, pieces, bits: None }
    }

    /// A name, a literal, an indexed field.
    pub(crate) fn whole(text: impl Into<String>) -> Self {
        Term::new(Level::Whole, text)
    }

    /// `a op b`.
    pub(crate) fn binary(op: Binary, a: Term, b: Term) -> Self {
        let (level, left_at_least, right_at_least) = binding(op);
        // `a && b || c` and `!a == b` are clear to a compiler; gcc warns all the same, and readers hesitate.
        let unclear = |side: &Term| match level {
            Level::Or => side.level == Level::And || side.level.is_of_bits(),
            Level::And => side.level.is_of_bits(),
            Level::Comparison => matches!(side.pieces.first(), Some(Piece::Text(text)) if text.starts_with('!')),
            Level::BitOr | Level::BitXor | Level::BitAnd | Level::Shift => {
                side.level != level && side.level < Level::Prefix
            }
            Level::Sum | Level::Product | Level::As | Level::Prefix | Level::Whole => false,
        };
        let (a_unclear, b_unclear) = (unclear(&a), unclear(&b));
        let chain = a.level == level;
        let a = a.held(left_at_least, a_unclear).deeper(usize::from(!chain));
        let b = b.held(right_at_least, b_unclear).deeper(1);
        let mut pieces = a.pieces;
        pieces.push(Piece::Text(format!(" {}", op.symbol())));
        pieces.push(Piece::Gap { depth: 0 });
        pieces.extend(b.pieces);
        Term::of(level, pieces)
    }

    /// `-a`, `!a`, `(float)a`: an operator written before its operand.
    pub(crate) fn prefix(operator: &str, a: Term) -> Self {
        Term::of(Level::Prefix, a.held(Level::Whole, false).around(operator, "").pieces)
    }

    /// `name(a, b)`.
    pub(crate) fn call(name: &str, arguments: Vec<Term>) -> Self {
        Term::list(&format!("{name}("), arguments, ")")
    }

    /// `a.name(b)`.
    pub(crate) fn method(a: Term, name: &str, arguments: Vec<Term>) -> Self {
        Term::joined(a.operand(Level::Whole), Term::call(&format!(".{name}"), arguments))
    }

    /// `items` with commas between them, between `before` and `after`, which make a whole of it.
    pub(crate) fn list(before: &str, items: Vec<Term>, after: &str) -> Self {
        let mut pieces = vec![Piece::Text(before.into())];
        for (position, item) in items.into_iter().enumerate() {
            if position > 0 {
                pieces.push(Piece::Text(",".into()));
                pieces.push(Piece::Gap { depth: 1 });
            }
            pieces.extend(item.deeper(2).pieces);
        }
        pieces.push(Piece::Text(after.into()));
        Term::of(Level::Whole, pieces)
    }

    /// `a` between `before` and `after`, which make a whole of it: `(a as f32)`, `f64::from(a)`.
    pub(crate) fn enclosed(before: &str, a: Term, after: &str) -> Self {
        Term::of(Level::Whole, a.deeper(2).around(before, after).pieces)
    }

    /// `a` and `b` without anything between them, which make a whole: `a` and `.sqrt()`.
    pub(crate) fn joined(a: Term, b: Term) -> Self {
        let mut pieces = a.pieces;
        pieces.extend(b.pieces);
        Term::of(Level::Whole, pieces)
    }

    /// The term, which remembers that `bits` has the same bits in another type: `(int)(a + b)` remembers `a + b`.
    pub(crate) fn with_bits(self, bits: Term) -> Self {
        Term { bits: Some(Box::new(Term::of(bits.level, bits.pieces))), ..self }
    }

    /// What [`Term::with_bits`] gave it.
    pub(crate) fn bits(&self) -> Option<Term> {
        self.bits.as_deref().cloned()
    }

    /// The operand of something that binds as `level` does, before or after it: `a` in `a as f32` or `a.sqrt()`.
    pub(crate) fn operand(self, level: Level) -> Self {
        self.held(level, false)
    }

    /// The same text with more before and after it; binds as before.
    pub(crate) fn around(mut self, before: &str, after: &str) -> Self {
        self.pieces.insert(0, Piece::Text(before.into()));
        self.pieces.push(Piece::Text(after.into()));
        self.bits = None;
        self
    }

    /// Puts parentheses round a term that binds less tightly than `least`, or if `anyway`.
    fn held(self, least: Level, anyway: bool) -> Self {
        if self.level < least || anyway { Term::enclosed("(", self, ")") } else { self }
    }

    fn deeper(mut self, by: usize) -> Self {
        for piece in &mut self.pieces {
            if let Piece::Gap { depth } = piece {
                *depth += by;
            }
        }
        self
    }

    /// The term as lines, the first indented by `indent` columns, the next by four more. A line is broken after an
    /// operator, at the outermost one that leaves neither a stump nor too long a line.
    pub(crate) fn lines(&self, indent: usize) -> Vec<String> {
        let words = self.words();
        let mut lines = Vec::new();
        let mut rest = words.as_slice();
        while !rest.is_empty() {
            let margin = indent + if lines.is_empty() { 0 } else { 4 };
            let taken = first_line(rest, COLUMNS.saturating_sub(margin));
            let text: Vec<&str> = rest[..taken].iter().map(|word| word.text.as_str()).collect();
            lines.push(format!("{:margin$}{}", "", text.join(" ")));
            rest = &rest[taken..];
        }
        lines
    }

    /// What stands between two gaps.
    fn words(&self) -> Vec<Word> {
        let mut words = vec![Word { text: String::new(), gap: 0 }];
        for piece in &self.pieces {
            let last = words.last_mut().expect("there is always a word");
            match piece {
                Piece::Text(text) => last.text.push_str(text),
                Piece::Gap { depth } => {
                    last.gap = *depth;
                    words.push(Word { text: String::new(), gap: 0 });
                }
            }
        }
        words
    }
}

/// The term on one line.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words().into_iter().map(|word| word.text).collect();
        f.write_str(&words.join(" "))
    }
}

/// Text without a gap, and the depth of the gap after it.
struct Word {
    text: String,
    gap: usize,
}

/// How many of `words` go on a line of `columns`: all if they fit, at least one.
fn first_line(words: &[Word], columns: usize) -> usize {
    let mut ends = Vec::with_capacity(words.len());
    for word in words {
        let start = ends.last().map_or(0, |end| end + 1);
        ends.push(start + word.text.chars().count());
    }
    if ends.last().is_none_or(|end| *end <= columns) {
        return words.len();
    }
    let fitting = ends.iter().take_while(|end| **end <= columns).count();
    let long_enough = ends[..fitting].iter().take_while(|end| **end < columns / 2).count();
    let best = |from: usize| (from..fitting).rev().min_by_key(|at| words[*at].gap);
    best(long_enough).or_else(|| best(0)).map_or(1, |at| at + 1)
}

/// The level of `op`, and how tightly its left and right operands must bind to need no parentheses.
fn binding(op: Binary) -> (Level, Level, Level) {
    match op {
        Binary::Add | Binary::Sub => (Level::Sum, Level::Sum, Level::Product),
        Binary::Mul | Binary::Div | Binary::Rem => (Level::Product, Level::Product, Level::As),
        Binary::BitOr => (Level::BitOr, Level::BitOr, Level::Prefix),
        Binary::BitXor => (Level::BitXor, Level::BitXor, Level::Prefix),
        Binary::BitAnd => (Level::BitAnd, Level::BitAnd, Level::Prefix),
        Binary::Shl | Binary::Shr => (Level::Shift, Level::Shift, Level::Prefix),
        Binary::And => (Level::And, Level::And, Level::Comparison),
        Binary::Or => (Level::Or, Level::Or, Level::And),
        Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge | Binary::Eq | Binary::Ne => {
            debug_assert_eq!(op.kind(), BinaryKind::Comparison);
            // C ranks `==` below `<` and Rust does not; neither chains them usefully.
            (Level::Comparison, Level::Sum, Level::Sum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Term {
        Term::whole(text)
    }

    fn op(op: Binary, a: Term, b: Term) -> Term {
        Term::binary(op, a, b)
    }

    fn check(term: Term, expected: &str) {
        assert_eq!(term.lines(0).join("\n"), expected);
    }

    #[test]
    fn chains_to_the_left_need_no_parentheses() {
        use Binary::{Add, Div, Mul, Sub};
        let [a, b, c] = ["a", "b", "c"].map(name);
        check(op(Sub, op(Sub, a.clone(), b.clone()), c.clone()), "a - b - c");
        check(op(Sub, a.clone(), op(Sub, b.clone(), c.clone())), "a - (b - c)");
        check(op(Add, a.clone(), op(Add, b.clone(), c.clone())), "a + (b + c)");
        check(op(Div, op(Div, a.clone(), b.clone()), c.clone()), "a / b / c");
        check(op(Mul, a.clone(), op(Div, b.clone(), c.clone())), "a * (b / c)");
        check(op(Add, op(Mul, a.clone(), b.clone()), op(Mul, b.clone(), c.clone())), "a * b + b * c");
        check(op(Mul, op(Add, a.clone(), b.clone()), c.clone()), "(a + b) * c");
    }

    #[test]
    fn signs_never_run_together() {
        let minus = |a| Term::prefix("-", a);
        check(minus(minus(name("a"))), "-(-a)");
        check(minus(Term::new(Level::Prefix, "-1.0")), "-(-1.0)");
        check(op(Binary::Sub, name("a"), minus(name("b"))), "a - -b");
        check(op(Binary::Mul, minus(name("a")), name("b")), "-a * b");
        check(minus(op(Binary::Mul, name("a"), name("b"))), "-(a * b)");
        check(Term::prefix("(float)", minus(name("a"))), "(float)(-a)");
    }

    #[test]
    fn comparisons_and_logic_are_made_plain() {
        use Binary::{And, Eq, Lt, Or};
        let [a, b, c] = ["a", "b", "c"].map(name);
        let less = || op(Lt, name("a"), name("b"));
        check(op(Eq, less(), less()), "(a < b) == (a < b)");
        check(op(Or, op(And, a.clone(), b.clone()), c.clone()), "(a && b) || c");
        check(op(Or, a.clone(), op(And, b.clone(), c.clone())), "a || (b && c)");
        check(op(And, op(Or, a.clone(), b.clone()), c.clone()), "(a || b) && c");
        check(op(And, op(And, less(), b.clone()), c.clone()), "a < b && b && c");
        check(op(Lt, op(Binary::Add, a, b), c), "a + b < c");
        check(Term::prefix("!", less()), "!(a < b)");
        check(op(Eq, Term::prefix("!", name("a")), name("b")), "(!a) == b");
    }

    #[test]
    fn operators_on_bits_stand_alone() {
        use Binary::{Add, And, BitAnd, BitOr, BitXor, Eq, Rem, Shl, Shr};
        let [a, b, c] = ["a", "b", "c"].map(name);
        check(op(BitOr, op(BitOr, a.clone(), b.clone()), c.clone()), "a | b | c");
        check(op(BitOr, a.clone(), op(BitOr, b.clone(), c.clone())), "a | (b | c)");
        check(op(BitOr, op(BitAnd, a.clone(), b.clone()), c.clone()), "(a & b) | c");
        check(op(BitXor, op(Add, a.clone(), b.clone()), Term::prefix("-", c.clone())), "(a + b) ^ -c");
        check(op(Shl, op(Shr, a.clone(), b.clone()), op(Rem, b.clone(), c.clone())), "a >> b << (b % c)");
        check(op(Add, op(Shl, a.clone(), b.clone()), c.clone()), "(a << b) + c");
        check(op(Eq, op(BitAnd, a.clone(), b.clone()), c.clone()), "(a & b) == c");
        check(op(BitAnd, op(Eq, a.clone(), b.clone()), c.clone()), "(a == b) & c");
        check(op(And, op(BitAnd, a, b), c), "(a & b) && c");
    }

    #[test]
    fn bits_are_remembered_until_the_term_changes() {
        let sum = op(Binary::Add, name("a"), name("b"));
        let signed = Term::prefix("(int)", sum.clone()).with_bits(sum);
        let bits = signed.bits().expect("it was told its bits");
        check(bits, "a + b");
        assert!(Term::prefix("-", signed.clone()).bits().is_none());
        assert!(signed.clone().around("x = ", "").bits().is_none());
        check(signed, "(int)(a + b)");
    }

    #[test]
    fn long_sums_break_after_outer_operators() {
        let product = |n: usize| op(Binary::Mul, name(&format!("weight_{n}")), name(&format!("u[c + {n}]")));
        let sum = (10..19).map(product).reduce(|a, b| op(Binary::Add, a, b)).expect("there are terms");
        let lines = sum.around("out[c] = ", ";").lines(4);
        assert_eq!(
            lines,
            [
                "    out[c] = weight_10 * u[c + 10] + weight_11 * u[c + 11] + weight_12 * u[c + 12] + weight_13 * u[c + 13] +",
                "        weight_14 * u[c + 14] + weight_15 * u[c + 15] + weight_16 * u[c + 16] + weight_17 * u[c + 17] +",
                "        weight_18 * u[c + 18];",
            ]
        );
    }

    #[test]
    fn a_word_wider_than_a_line_stands_alone() {
        let wide = "x".repeat(2 * COLUMNS);
        let lines = op(Binary::Add, name(&wide), op(Binary::Mul, name("a"), name(&wide))).lines(0);
        assert_eq!(lines, [format!("{wide} +"), "    a *".to_string(), format!("    {wide}")]);
    }
}
