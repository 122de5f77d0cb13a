//! The exact judge of a line: RFC 8259 to the letter.
//!
//! A line that the quick way refuses comes here, where the reason is found; a few of them are rows all the same, such as
//! integers of more digits or nested values of more levels than jiter takes. The same grammar finds the end of nested
//! values on the quick way.

use crate::reason::Reason;
use crate::scan;
use crate::unescape::unescape;
use std::collections::HashSet;
use std::ops::Range;

/// Objects and arrays may be nested this deep, the row itself included. It lies above whatever jiter accepts (202), so
/// that one limit holds for both ways.
pub const MAX_DEPTH: usize = 256;

/// One member of the row: its key, unescaped, and where key and value stand in the line (a string with its quotes).
#[derive(Debug, PartialEq, Eq)]
pub struct Member {
    pub key: String,
    pub raw_key: Range<usize>,
    pub raw_value: Range<usize>,
}

/// The members of the only object on the line. The line is valid UTF-8 and not blank.
pub fn members(line: &str) -> Result<Vec<Member>, Reason> {
    let mut scanner = Scanner { bytes: line.as_bytes(), at: 0, controls: true, deepest: MAX_DEPTH };
    scanner.white_space();
    let mut spans = Vec::new();
    let is_object = scanner.peek() == Some(b'{');
    scanner.value(is_object.then_some(&mut spans))?;
    scanner.white_space();
    if scanner.at < line.len() {
        return Err(Reason::TrailingCharacters);
    }
    if !is_object {
        return Err(Reason::NotAnObject);
    }
    let mut members = Vec::with_capacity(spans.len());
    for (raw_key, raw_value) in spans {
        let key = unescape(&line[raw_key.clone()]).ok_or(Reason::LoneSurrogate)?;
        if line.as_bytes()[raw_value.start] == b'"' && unescape(&line[raw_value.clone()]).is_none() {
            return Err(Reason::LoneSurrogate);
        }
        members.push(Member { key, raw_key, raw_value });
    }
    let mut seen = HashSet::with_capacity(members.len());
    if members.iter().all(|member| seen.insert(member.key.as_str())) { Ok(members) } else { Err(Reason::DuplicateKey) }
}

/// The length of the member's value that begins here, on a line without control characters; None if it is not JSON or
/// too deep.
#[inline]
pub fn length_of_value(bytes: &[u8]) -> Option<usize> {
    let mut scanner = Scanner { bytes, at: 0, controls: false, deepest: MAX_DEPTH - 1 };
    scanner.value(None).ok().map(|()| scanner.at)
}

type Spans = Vec<(Range<usize>, Range<usize>)>;

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// There may be control characters, which no string may hold.
    controls: bool,
    /// So many brackets may be open, at most `MAX_DEPTH`.
    deepest: usize,
}

/// The brackets that are open, innermost last: a bit each, set for an object.
#[derive(Default)]
struct Brackets {
    objects: [u64; MAX_DEPTH / 64],
    depth: usize,
}

impl Brackets {
    #[inline]
    fn open(&mut self, object: bool) {
        let (word, bit) = (&mut self.objects[self.depth / 64], 1 << (self.depth % 64));
        *word = if object { *word | bit } else { *word & !bit };
        self.depth += 1;
    }

    /// Whether the innermost is an object; None if none is open.
    #[inline]
    fn innermost(&self) -> Option<bool> {
        let last = self.depth.checked_sub(1)?;
        Some(self.objects[last / 64] >> (last % 64) & 1 == 1)
    }
}

impl Scanner<'_> {
    /// Passes one value of any kind. With `members`, the spans of the outermost object's members are noted.
    /// Iterative: an attack by brackets must not eat the stack.
    #[inline]
    fn value(&mut self, mut members: Option<&mut Spans>) -> Result<(), Reason> {
        let mut open = Brackets::default();
        let mut key = 0..0;
        let mut member_start = 0;
        loop {
            self.white_space();
            if open.depth == 1 {
                member_start = self.at;
            }
            let mut complete = match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    if open.depth == self.deepest {
                        return Err(Reason::TooDeep);
                    }
                    let object = bracket == b'{';
                    open.open(object);
                    self.at += 1;
                    self.white_space();
                    let empty = self.peek() == Some(closing(object));
                    if empty {
                        self.at += 1;
                        open.depth -= 1;
                    } else if object {
                        let span = self.key()?;
                        if open.depth == 1 {
                            key = span;
                        }
                    }
                    empty
                }
                Some(b'"') => self.string().map(|()| true)?,
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                _ => self.number()?,
            };
            while complete {
                let Some(object) = open.innermost() else { return Ok(()) };
                if let (1, Some(members)) = (open.depth, members.as_deref_mut()) {
                    members.push((key.clone(), member_start..self.at));
                }
                self.white_space();
                match self.next() {
                    Some(b',') => {
                        complete = false;
                        if object {
                            self.white_space();
                            let span = self.key()?;
                            if open.depth == 1 {
                                key = span;
                            }
                        }
                    }
                    Some(byte) if byte == closing(object) => open.depth -= 1,
                    _ => return Err(Reason::NotJson),
                }
            }
        }
    }

    fn key(&mut self) -> Result<Range<usize>, Reason> {
        let start = self.at;
        self.string()?;
        let end = self.at;
        self.white_space();
        if self.next() == Some(b':') { Ok(start..end) } else { Err(Reason::NotJson) }
    }

    #[inline(always)]
    fn string(&mut self) -> Result<(), Reason> {
        if self.next() != Some(b'"') {
            return Err(Reason::NotJson);
        }
        loop {
            if !self.controls {
                self.at += scan::quote_or_backslash(&self.bytes[self.at..]).ok_or(Reason::NotJson)?;
            }
            match self.next() {
                Some(b'"') => return Ok(()),
                Some(b'\\') => match self.next() {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                    Some(b'u') => {
                        for _ in 0..4 {
                            if !self.next().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                return Err(Reason::NotJson);
                            }
                        }
                    }
                    _ => return Err(Reason::NotJson),
                },
                Some(0x20..) => {}
                _ => return Err(Reason::NotJson),
            }
        }
    }

    fn number(&mut self) -> Result<bool, Reason> {
        self.at += scan::number(&self.bytes[self.at..]).ok_or(Reason::NotJson)?;
        Ok(true)
    }

    fn word(&mut self, word: &[u8]) -> Result<bool, Reason> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(Reason::NotJson);
        }
        self.at += word.len();
        Ok(true)
    }

    fn white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }
}

fn closing(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_with_their_spans() {
        let line = r#" { "a" : [1, {"a":2}] ,"\u0062":"x\n" } "#;
        let found = members(line).unwrap();
        let spans: Vec<_> = found
            .iter()
            .map(|member| (member.key.as_str(), &line[member.raw_key.clone()], &line[member.raw_value.clone()]))
            .collect();
        assert_eq!(spans, [("a", r#""a""#, r#"[1, {"a":2}]"#), ("b", r#""\u0062""#, r#""x\n""#)]);
    }

    #[test]
    fn the_first_reason_in_order_wins() {
        for (line, reason) in [
            (r#"{"a":"\ud800","a":1"#, Reason::NotJson),
            (r#"{"a":"\ud800","a":1} x"#, Reason::TrailingCharacters),
            (r#"[1] x"#, Reason::TrailingCharacters),
            (r#"["\ud800"]"#, Reason::NotAnObject),
            (r#"{"a":1,"a":"\ud800"}"#, Reason::LoneSurrogate),
            (r#"{"a":1,"\u0061":2}"#, Reason::DuplicateKey),
            ("1e", Reason::NotJson),
            ("", Reason::NotJson),
        ] {
            assert_eq!(members(line), Err(reason), "{line}");
        }
        assert_eq!(members(&"[".repeat(1_000_000)), Err(Reason::TooDeep));
    }
}
