//! The text of a module as words and marks, with the line of each.

/// A piece of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A name, opcode, directive or number: `ld.param.u64`, `%tid.x`, `0f3F800000`.
    Word(String),
    /// Anything else that stands alone: `{`, `@`, `+`.
    Mark(char),
    /// What stands in quotation marks.
    Quoted(String),
}

/// The tokens of a text, read from front to back.
pub(crate) struct Tokens {
    tokens: Vec<(Token, usize)>,
    at: usize,
}

impl Tokens {
    /// Splits a text; comments are left out.
    pub(crate) fn new(text: &str) -> Result<Tokens, String> {
        let mut tokens = Vec::new();
        let mut rest = text.char_indices().peekable();
        let mut line = 1;
        while let Some((start, c)) = rest.next() {
            let after = &text[start..];
            if c == '\n' {
                line += 1;
            } else if c.is_whitespace() {
            } else if after.starts_with("//") {
                while rest.next_if(|(_, c)| *c != '\n').is_some() {}
            } else if after.starts_with("/*") {
                let end = after.find("*/").ok_or_else(|| format!("line {line}: the comment has no end"))?;
                line += after[..end].matches('\n').count();
                while rest.next_if(|(at, _)| *at < start + end + 2).is_some() {}
            } else if c == '"' {
                let end = after[1..].find('"').ok_or_else(|| format!("line {line}: the string has no end"))?;
                tokens.push((Token::Quoted(after[1..=end].to_owned()), line));
                while rest.next_if(|(at, _)| *at < start + end + 2).is_some() {}
            } else if is_of_word(c) {
                let end = after.find(|c| !is_of_word(c)).unwrap_or(after.len());
                tokens.push((Token::Word(after[..end].to_owned()), line));
                while rest.next_if(|(at, _)| *at < start + end).is_some() {}
            } else {
                tokens.push((Token::Mark(c), line));
            }
        }
        Ok(Tokens { tokens, at: 0 })
    }

    /// The line of the next token.
    pub(crate) fn line(&self) -> usize {
        let near = self.tokens.get(self.at).or(self.tokens.last());
        near.map_or(1, |(_, line)| *line)
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    pub(crate) fn peek_second(&self) -> Option<&Token> {
        self.tokens.get(self.at + 1).map(|(token, _)| token)
    }

    pub(crate) fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    /// Takes a mark if it comes next.
    pub(crate) fn takes(&mut self, mark: char) -> bool {
        let is_next = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes a word if it comes next.
    pub(crate) fn takes_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes the mark that must come next.
    pub(crate) fn expect(&mut self, mark: char) -> Result<(), String> {
        if self.takes(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    /// The word that must come next.
    pub(crate) fn word(&mut self) -> Result<String, String> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            Some(Token::Mark(_) | Token::Quoted(_)) | None => Err(self.unexpected("a word")),
        }
    }

    /// The whole number that must come next.
    pub(crate) fn size(&mut self) -> Result<usize, String> {
        let line = self.line();
        let word = self.word()?;
        integer(&word)
            .and_then(|value| usize::try_from(value).ok())
            .ok_or_else(|| format!("line {line}: `{word}` is no size"))
    }

    /// What to say where the next token is not what it should be.
    pub(crate) fn unexpected(&self, wanted: &str) -> String {
        let found = match self.peek() {
            Some(Token::Word(word)) => format!("`{word}`"),
            Some(Token::Mark(mark)) => format!("`{mark}`"),
            Some(Token::Quoted(text)) => format!("\"{text}\""),
            None => "the end".to_owned(),
        };
        format!("line {}: {wanted} should stand where {found} stands", self.line())
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')
}

/// A whole number without a sign: decimal, hexadecimal, octal or binary, perhaps with a `U` at its end.
pub(crate) fn integer(word: &str) -> Option<u64> {
    let plain = word.strip_suffix(['U', 'u']).unwrap_or(word);
    let with = |starts: [&str; 2]| starts.iter().find_map(|start| plain.strip_prefix(start));
    if let Some(digits) = with(["0x", "0X"]) {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = with(["0b", "0B"]) {
        return u64::from_str_radix(digits, 2).ok();
    }
    match plain.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => plain.parse().ok(),
    }
}
