//! What is wrong with a kernel, where, and what to write instead.

use std::fmt;

use crate::ir::Place;

/// One mistake, at the user's own tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub place: Place,
    /// What is wrong; names the construct. Lower case, no full stop.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The reason behind the rule, where it helps.
    pub note: Option<String>,
}

impl Diagnostic {
    /// A mistake at `place`.
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Diagnostic { place, message: message.into(), help: None, note: None }
    }

    /// The same with what to write instead.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with the reason behind the rule.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Message, help and note, one a line, as rustc lays them out.
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        for (label, part) in [("help", &self.help), ("note", &self.note)] {
            if let Some(part) = part {
                text.push_str(&format!("\n  = {label}: {part}"));
            }
        }
        text
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.place.line, self.place.column + 1, self.text())
    }
}
