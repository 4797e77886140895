//! A module as it is written: functions with their statements, and tables.

use crate::text::{Token, Tokens, integer};
use crate::types::Type;

/// What a text holds.
pub(crate) struct Source {
    pub(crate) version: String,
    pub(crate) target: String,
    pub(crate) functions: Vec<Function>,
    pub(crate) tables: Vec<Table>,
}

/// A function, or a kernel.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    pub(crate) results: Vec<Parameter>,
    pub(crate) parameters: Vec<Parameter>,
    /// The most threads of a block.
    pub(crate) most_threads: Option<u64>,
    pub(crate) body: Vec<Statement>,
}

/// A parameter of a function.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) bytes: usize,
    pub(crate) alignment: usize,
}

/// A variable of a module.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) alignment: usize,
    pub(crate) bytes: Vec<u8>,
}

/// A statement with its line.
pub(crate) struct Statement {
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

/// What a statement does.
pub(crate) enum Kind {
    /// A scope begins.
    Open,
    /// It ends.
    Close,
    Label(String),
    /// Registers: a single one, or as many with numbers behind the name.
    Registers {
        ty: Type,
        name: String,
        count: Option<usize>,
    },
    /// Memory of the thread.
    Local {
        name: String,
        bytes: usize,
        alignment: usize,
    },
    /// What is passed to a function.
    Passed {
        name: String,
    },
    /// Where an indexed branch may go.
    Targets {
        name: String,
        labels: Vec<String>,
    },
    Instruction(Instruction),
}

/// An instruction.
pub(crate) struct Instruction {
    /// The predicate that decides, and whether it is turned round.
    pub(crate) guard: Option<(String, bool)>,
    /// The opcode with its modifiers.
    pub(crate) opcode: Vec<String>,
    pub(crate) operands: Vec<Operand>,
}

/// An operand.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Name(String),
    /// Bits of an integer, sign-extended to 64.
    Integer(u64),
    F32(u32),
    F64(u64),
    /// `[base+offset]`; without a base the offset is the address.
    Address {
        base: Option<String>,
        offset: i64,
    },
    /// `{a, b}`.
    Vector(Vec<Operand>),
    /// `(a, b)`.
    List(Vec<String>),
    /// `a|b`.
    Pair(String, String),
    /// `!a`.
    Not(String),
}

/// Reads a module.
pub(crate) fn source(text: &str) -> Result<Source, String> {
    let mut tokens = Tokens::new(text)?;
    let mut source =
        Source { version: String::new(), target: String::new(), functions: Vec::new(), tables: Vec::new() };
    while tokens.peek().is_some() {
        let line = tokens.line();
        let word = tokens.word()?;
        match word.as_str() {
            ".version" => source.version = tokens.word()?,
            ".target" => {
                source.target = tokens.word()?;
                while tokens.takes(',') {
                    let option = tokens.word()?;
                    if option != "debug" && option != "texmode_independent" {
                        return Err(format!("line {line}: the target option `{option}` is not known"));
                    }
                }
            }
            ".address_size" => {
                let bits = tokens.size()?;
                if bits != 64 {
                    return Err(format!("line {line}: addresses of {bits} bits are not known"));
                }
            }
            // Who may see it makes no difference to what it does.
            ".visible" | ".weak" => {}
            ".entry" => source.functions.push(function(&mut tokens, true)?),
            ".func" => {
                let function = function(&mut tokens, false)?;
                if !function.body.is_empty() {
                    source.functions.push(function);
                }
            }
            ".global" | ".const" => source.tables.push(table(&mut tokens)?),
            _ => return Err(format!("line {line}: `{word}` is not known")),
        }
    }
    if source.version.is_empty() || source.target.is_empty() {
        return Err("the module lacks `.version` or `.target`".to_owned());
    }
    Ok(source)
}

fn function(tokens: &mut Tokens, is_kernel: bool) -> Result<Function, String> {
    let results = if !is_kernel && tokens.peek() == Some(&Token::Mark('(')) { parameters(tokens)? } else { Vec::new() };
    let name = tokens.word()?;
    let parameters = if tokens.peek() == Some(&Token::Mark('(')) { parameters(tokens)? } else { Vec::new() };
    let mut function = Function { name, is_kernel, results, parameters, most_threads: None, body: Vec::new() };
    while let Some(Token::Word(_)) = tokens.peek() {
        let line = tokens.line();
        let directive = tokens.word()?;
        let mut sizes = vec![1];
        match directive.as_str() {
            ".noreturn" => continue,
            ".maxntid" | ".reqntid" | ".minnctapersm" | ".maxnreg" => sizes[0] = tokens.size()?,
            _ => return Err(format!("line {line}: `{directive}` is not known")),
        }
        while tokens.takes(',') {
            sizes.push(tokens.size()?);
        }
        if directive == ".maxntid" {
            function.most_threads = Some(sizes.iter().map(|size| *size as u64).product());
        } else if directive == ".reqntid" {
            return Err(format!("line {line}: `.reqntid` is not known"));
        }
    }
    // A declaration only.
    if tokens.takes(';') {
        return Ok(function);
    }
    tokens.expect('{')?;
    let mut depth = 1;
    while depth > 0 {
        let line = tokens.line();
        let kinds = statement(tokens)?;
        for kind in kinds {
            match kind {
                Kind::Open => depth += 1,
                Kind::Close => depth -= 1,
                _ => {}
            }
            function.body.push(Statement { line, kind });
        }
    }
    Ok(function)
}

fn parameters(tokens: &mut Tokens) -> Result<Vec<Parameter>, String> {
    tokens.expect('(')?;
    let mut parameters = Vec::new();
    while !tokens.takes(')') {
        let line = tokens.line();
        let word = tokens.word()?;
        if word != ".param" {
            return Err(format!("line {line}: a parameter should begin where `{word}` stands"));
        }
        let Variable { name, element, count, alignment } = variable(tokens)?;
        parameters.push(Parameter { name, bytes: element.bytes * count, alignment });
        tokens.takes(',');
    }
    Ok(parameters)
}

/// A name with its type, the number of its elements and its alignment.
struct Variable {
    name: String,
    element: Type,
    count: usize,
    alignment: usize,
}

/// `.align 8 .b8 name[16]`.
fn variable(tokens: &mut Tokens) -> Result<Variable, String> {
    let mut alignment = None;
    let mut ty = None;
    loop {
        let line = tokens.line();
        let word = tokens.word()?;
        match word.as_str() {
            ".align" => alignment = Some(tokens.size()?),
            // A hint about what a pointer points to, with a space and an alignment.
            ".ptr" | ".global" => {}
            _ if word.starts_with('.') => {
                let known = Type::parse(&word[1..]).filter(|ty| ty.bits() != 1);
                ty = Some(known.ok_or_else(|| format!("line {line}: `{word}` is no type of a variable"))?);
            }
            _ => {
                let element = ty.ok_or_else(|| format!("line {line}: `{word}` has no type"))?;
                let mut count = 1;
                while tokens.takes('[') {
                    count *= tokens.size()?;
                    tokens.expect(']')?;
                }
                let alignment = alignment.unwrap_or(element.bytes);
                if !alignment.is_power_of_two() {
                    return Err(format!("line {line}: {alignment} is no alignment"));
                }
                return Ok(Variable { name: word, element, count, alignment });
            }
        }
    }
}

/// A table with its values.
fn table(tokens: &mut Tokens) -> Result<Table, String> {
    let Variable { name, element, count, alignment } = variable(tokens)?;
    let mut bytes = Vec::new();
    if tokens.takes('=') {
        let mut depth = 0;
        while tokens.peek() != Some(&Token::Mark(';')) {
            if tokens.takes('{') {
                depth += 1;
            } else if tokens.takes('}') {
                depth -= 1;
            } else if !tokens.takes(',') {
                let line = tokens.line();
                let bits = match (operand(tokens)?, depth) {
                    (Operand::Integer(bits) | Operand::F64(bits), 0..=1) => bits,
                    (Operand::F32(bits), 0..=1) => u64::from(bits),
                    (other, _) => return Err(format!("line {line}: {other:?} is no value of a table")),
                };
                bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes]);
            }
        }
    }
    if bytes.len() > element.bytes * count {
        return Err(format!("line {}: `{name}` has too many values", tokens.line()));
    }
    bytes.resize(element.bytes * count, 0);
    tokens.expect(';')?;
    Ok(Table { name, alignment, bytes })
}

fn statement(tokens: &mut Tokens) -> Result<Vec<Kind>, String> {
    if tokens.takes('{') {
        return Ok(vec![Kind::Open]);
    }
    if tokens.takes('}') {
        return Ok(vec![Kind::Close]);
    }
    let line = tokens.line();
    if let (Some(Token::Word(label)), Some(Token::Mark(':'))) = (tokens.peek(), tokens.peek_second()) {
        let name = label.clone();
        tokens.next();
        tokens.next();
        if tokens.takes_word(".branchtargets") {
            let labels = names(tokens, ';')?;
            return Ok(vec![Kind::Targets { name, labels }]);
        }
        return Ok(vec![Kind::Label(name)]);
    }
    match tokens.peek() {
        Some(Token::Word(word)) if word == ".reg" => {
            tokens.next();
            registers(tokens)
        }
        Some(Token::Word(word)) if word == ".local" => {
            tokens.next();
            let Variable { name, element, count, alignment } = variable(tokens)?;
            tokens.expect(';')?;
            Ok(vec![Kind::Local { name, bytes: element.bytes * count, alignment }])
        }
        Some(Token::Word(word)) if word == ".param" => {
            tokens.next();
            let Variable { name, .. } = variable(tokens)?;
            tokens.expect(';')?;
            Ok(vec![Kind::Passed { name }])
        }
        // Advice to the assembler about loops.
        Some(Token::Word(word)) if word == ".pragma" => {
            tokens.next();
            match tokens.next() {
                Some(Token::Quoted(advice)) if advice == "nounroll" => {}
                other => return Err(format!("line {line}: the pragma {other:?} is not known")),
            }
            tokens.expect(';')?;
            Ok(Vec::new())
        }
        Some(Token::Word(word)) if word.starts_with('.') => Err(format!("line {line}: `{word}` is not known")),
        _ => Ok(vec![Kind::Instruction(instruction(tokens)?)]),
    }
}

/// `.b32 %r<29>, %x;` without the `.reg`.
fn registers(tokens: &mut Tokens) -> Result<Vec<Kind>, String> {
    let line = tokens.line();
    let word = tokens.word()?;
    let ty = word.strip_prefix('.').and_then(Type::parse);
    let ty = ty.ok_or_else(|| format!("line {line}: `{word}` is no type of a register"))?;
    let mut kinds = Vec::new();
    loop {
        let name = tokens.word()?;
        let mut count = None;
        if tokens.takes('<') {
            count = Some(tokens.size()?);
            tokens.expect('>')?;
        }
        kinds.push(Kind::Registers { ty, name, count });
        if !tokens.takes(',') {
            tokens.expect(';')?;
            return Ok(kinds);
        }
    }
}

fn instruction(tokens: &mut Tokens) -> Result<Instruction, String> {
    let mut guard = None;
    if tokens.takes('@') {
        let is_turned = tokens.takes('!');
        guard = Some((tokens.word()?, is_turned));
    }
    let opcode = tokens.word()?.split('.').map(str::to_owned).collect();
    let mut operands = Vec::new();
    while !tokens.takes(';') {
        operands.push(operand(tokens)?);
        if !tokens.takes(',') {
            tokens.expect(';')?;
            break;
        }
    }
    Ok(Instruction { guard, opcode, operands })
}

/// Names up to a mark, with or without brackets round them.
fn names(tokens: &mut Tokens, end: char) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    while !tokens.takes(end) {
        names.push(tokens.word()?);
        tokens.takes(',');
    }
    Ok(names)
}

fn operand(tokens: &mut Tokens) -> Result<Operand, String> {
    if tokens.takes('[') {
        return address(tokens);
    }
    if tokens.takes('(') {
        return Ok(Operand::List(names(tokens, ')')?));
    }
    if tokens.takes('{') {
        let mut parts = Vec::new();
        while !tokens.takes('}') {
            parts.push(operand(tokens)?);
            tokens.takes(',');
        }
        return Ok(Operand::Vector(parts));
    }
    if tokens.takes('!') {
        return Ok(Operand::Not(tokens.word()?));
    }
    let line = tokens.line();
    let is_negative = tokens.takes('-');
    let word = tokens.word()?;
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        if is_negative {
            return Err(format!("line {line}: `-{word}` is no operand"));
        }
        if tokens.takes('|') {
            return Ok(Operand::Pair(word, tokens.word()?));
        }
        return Ok(Operand::Name(word));
    }
    let no_number = || format!("line {line}: `{word}` is no number");
    let bits = |starts: [&str; 2]| starts.iter().find_map(|start| word.strip_prefix(start));
    if let Some(digits) = bits(["0f", "0F"]) {
        let bits = u32::from_str_radix(digits, 16).map_err(|_| no_number())?;
        return Ok(Operand::F32(bits ^ (u32::from(is_negative) << 31)));
    }
    if let Some(digits) = bits(["0d", "0D"]) {
        let bits = u64::from_str_radix(digits, 16).map_err(|_| no_number())?;
        return Ok(Operand::F64(bits ^ (u64::from(is_negative) << 63)));
    }
    let value = integer(&word).ok_or_else(no_number)?;
    Ok(Operand::Integer(if is_negative { value.wrapping_neg() } else { value }))
}

/// What follows a `[`.
fn address(tokens: &mut Tokens) -> Result<Operand, String> {
    let line = tokens.line();
    let no_address = || format!("line {line}: the address is not understood");
    let mut base = None;
    let mut offset = 0i64;
    let mut sign = 1i64;
    while !tokens.takes(']') {
        if tokens.takes('+') {
        } else if tokens.takes('-') {
            sign = -sign;
        } else {
            let word = tokens.word()?;
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                let value = integer(&word).ok_or_else(no_address)?.cast_signed();
                offset = offset.wrapping_add(value.wrapping_mul(sign));
            } else if base.replace(word).is_some() || sign < 0 {
                return Err(no_address());
            }
            sign = 1;
        }
    }
    Ok(Operand::Address { base, offset })
}
