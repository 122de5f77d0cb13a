//! The strict validator: the complete grammar of RFC 8259.
//!
//! It checks the lines that the fast path does not accept and finds the reason of a reject. Some of these lines are rows:
//! jiter limits the digits of an integer and the levels of nesting. The fast path uses the same grammar to find the end
//! of a nested value.

use crate::reason::Reason;
use crate::scan;
use crate::unescape::unescape;
use std::ops::Range;

/// Maximum depth of nested objects and arrays, including the row. It is above the 202 levels that jiter accepts, so
/// that the fast path and the strict validator have the same limit.
pub const MAX_DEPTH: usize = 256;

/// Calls `visit` with key (unescaped), key span and value span (a string with its quotes) of each member of the row, if the
/// line is exactly one object; else the first reason to reject it, in the order of `Reason`. The line is not blank.
///
/// `visit` returns false for a key that the row already has: it is not called again. Members are not collected, because a
/// line can have millions; the caller removes what it has written if the line is rejected.
pub fn visit_members(
    line: &str,
    mut visit: impl FnMut(&str, Range<usize>, Range<usize>) -> bool,
) -> Result<(), Reason> {
    let mut scanner = Scanner::<true> { bytes: line.as_bytes(), position: 0, max_depth: MAX_DEPTH };
    scanner.skip_white_space();
    let start = scanner.position;
    let is_object = scanner.peek() == Some(b'{');
    scanner.skip_value(None)?;
    scanner.skip_white_space();
    if scanner.position < line.len() {
        return Err(Reason::TrailingCharacters);
    }
    if !is_object {
        return Err(Reason::NotAnObject);
    }
    let mut reason = None;
    scanner.position = start;
    scanner.skip_value(Some(&mut |key_span, value_span| {
        if reason == Some(Reason::LoneSurrogate) {
            return;
        }
        let value = &line[value_span.clone()];
        let value_is_text = !value.starts_with('"') || unescape(value).is_some();
        match unescape(&line[key_span.clone()]) {
            Some(key) if value_is_text => {
                if reason.is_none() && !visit(&key, key_span, value_span) {
                    reason = Some(Reason::DuplicateKey);
                }
            }
            _ => reason = Some(Reason::LoneSurrogate),
        }
    }))?;
    reason.map_or(Ok(()), Err)
}

/// The length of the value at the start of `bytes`, which belongs to a member of the row; None if it is not JSON or too
/// deep. The line has no control characters.
#[inline]
pub fn value_length(bytes: &[u8]) -> Option<usize> {
    let mut scanner = Scanner::<false> { bytes, position: 0, max_depth: MAX_DEPTH - 1 };
    scanner.skip_value(None).ok().map(|()| scanner.position)
}

/// Called with the spans of key and value of a member.
type OnMember<'a> = &'a mut dyn FnMut(Range<usize>, Range<usize>);

/// `CONTROL`: whether the line can have control characters, which are not valid in strings.
struct Scanner<'a, const CONTROL: bool> {
    bytes: &'a [u8],
    position: usize,
    /// Maximum number of open brackets, not more than `MAX_DEPTH`.
    max_depth: usize,
}

/// The open brackets, the innermost last, one bit each: set for an object.
#[derive(Default)]
pub struct OpenBrackets {
    objects: [u64; MAX_DEPTH / 64],
    pub depth: usize,
}

impl OpenBrackets {
    #[inline]
    pub fn push(&mut self, is_object: bool) {
        let (word, bit) = (&mut self.objects[self.depth / 64], 1 << (self.depth % 64));
        *word = if is_object { *word | bit } else { *word & !bit };
        self.depth += 1;
    }

    /// Whether the innermost bracket belongs to an object; None if none is open.
    #[inline]
    pub fn innermost(&self) -> Option<bool> {
        let last = self.depth.checked_sub(1)?;
        Some(self.objects[last / 64] >> (last % 64) & 1 == 1)
    }
}

impl<const CONTROL: bool> Scanner<'_, CONTROL> {
    /// Skips one value of any type. `on_member` is called with the members of the outermost object.
    ///
    /// It does not recurse, so that the input cannot decide how much of the stack is used.
    #[inline]
    fn skip_value(&mut self, mut on_member: Option<OnMember<'_>>) -> Result<(), Reason> {
        let mut open = OpenBrackets::default();
        let mut key_span = 0..0;
        let mut value_start = 0;
        loop {
            self.skip_white_space();
            if open.depth == 1 {
                value_start = self.position;
            }
            let mut value_is_complete = match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    if open.depth == self.max_depth {
                        return Err(Reason::TooDeep);
                    }
                    let is_object = bracket == b'{';
                    open.push(is_object);
                    self.position += 1;
                    self.skip_white_space();
                    let empty = self.peek() == Some(closing_bracket(is_object));
                    if empty {
                        self.position += 1;
                        open.depth -= 1;
                    } else if is_object {
                        let span = self.skip_key()?;
                        if open.depth == 1 {
                            key_span = span;
                        }
                    }
                    empty
                }
                Some(b'"') => self.skip_string().map(|()| true)?,
                Some(b't') => self.skip_word(b"true").map(|()| true)?,
                Some(b'f') => self.skip_word(b"false").map(|()| true)?,
                Some(b'n') => self.skip_word(b"null").map(|()| true)?,
                _ => self.skip_number().map(|()| true)?,
            };
            while value_is_complete {
                let Some(is_object) = open.innermost() else { return Ok(()) };
                if let (1, true, Some(on_member)) = (open.depth, is_object, &mut on_member) {
                    on_member(key_span.clone(), value_start..self.position);
                }
                self.skip_white_space();
                match self.next() {
                    Some(b',') => {
                        value_is_complete = false;
                        if is_object {
                            self.skip_white_space();
                            let span = self.skip_key()?;
                            if open.depth == 1 {
                                key_span = span;
                            }
                        }
                    }
                    Some(byte) if byte == closing_bracket(is_object) => open.depth -= 1,
                    _ => return Err(Reason::NotJson),
                }
            }
        }
    }

    /// Skips a key and its colon; the span is the key's.
    #[inline(always)]
    fn skip_key(&mut self) -> Result<Range<usize>, Reason> {
        let start = self.position;
        self.skip_string()?;
        let end = self.position;
        self.skip_white_space();
        if self.next() == Some(b':') { Ok(start..end) } else { Err(Reason::NotJson) }
    }

    #[inline(always)]
    fn skip_string(&mut self) -> Result<(), Reason> {
        if self.next() != Some(b'"') {
            return Err(Reason::NotJson);
        }
        loop {
            if !CONTROL {
                self.position += scan::find_quote_or_backslash(&self.bytes[self.position..]).ok_or(Reason::NotJson)?;
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

    fn skip_number(&mut self) -> Result<(), Reason> {
        self.position += scan::number_length(&self.bytes[self.position..]).ok_or(Reason::NotJson)?;
        Ok(())
    }

    fn skip_word(&mut self, word: &[u8]) -> Result<(), Reason> {
        if !self.bytes[self.position..].starts_with(word) {
            return Err(Reason::NotJson);
        }
        self.position += word.len();
        Ok(())
    }

    #[inline(always)]
    fn skip_white_space(&mut self) {
        // Most often there is none, as one comparison shows.
        while let Some(byte) = self.peek()
            && byte <= b' '
            && matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
        {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.position += 1;
        Some(byte)
    }
}

fn closing_bracket(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members that are visited: key, key verbatim and value verbatim.
    fn parse_members(line: &str) -> Result<Vec<(String, &str, &str)>, Reason> {
        let mut members: Vec<(String, &str, &str)> = Vec::new();
        visit_members(line, |key, key_span, value_span| {
            let is_new = members.iter().all(|(other, ..)| other != key);
            members.push((key.to_owned(), &line[key_span], &line[value_span]));
            is_new
        })?;
        Ok(members)
    }

    #[test]
    fn members_have_their_keys_and_spans() {
        let line = r#" { "a" : [1, {"a":2}] ,"\u0062":"x\n" } "#;
        let expected = [("a".into(), r#""a""#, r#"[1, {"a":2}]"#), ("b".into(), r#""\u0062""#, r#""x\n""#)];
        assert_eq!(parse_members(line).unwrap(), expected);
    }

    #[test]
    fn no_member_is_visited_after_a_duplicate() {
        let mut visits = 0;
        let mut visit = |_: &str, _, _| {
            visits += 1;
            visits == 1
        };
        assert_eq!(visit_members(r#"{"a":1,"a":2,"a":3,"b":4}"#, &mut visit), Err(Reason::DuplicateKey));
        assert_eq!(visits, 2);
    }

    #[test]
    fn the_first_reason_in_order_is_returned() {
        for (line, reason) in [
            (r#"{"a":"\ud800","a":1"#, Reason::NotJson),
            (r#"{"a":"\ud800","a":1} x"#, Reason::TrailingCharacters),
            (r#"[1] x"#, Reason::TrailingCharacters),
            (r#"["\ud800"]"#, Reason::NotAnObject),
            (r#"{"a":1,"a":"\ud800"}"#, Reason::LoneSurrogate),
            (r#"{"a":1,"a":2,"\udc00":3}"#, Reason::LoneSurrogate),
            (r#"{"a":"\ud800","b":1,"b":2}"#, Reason::LoneSurrogate),
            (r#"{"a":1,"\u0061":2}"#, Reason::DuplicateKey),
            ("1e", Reason::NotJson),
            ("", Reason::NotJson),
        ] {
            assert_eq!(parse_members(line), Err(reason), "{line}");
        }
        assert_eq!(parse_members(&"[".repeat(1_000_000)), Err(Reason::TooDeep));
    }
}
