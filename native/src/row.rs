//! Turns one line into one row of the table.
//!
//! The fast path finds simple members by byte scans and the others by jiter. If it does not accept the line, the
//! strict validator decides.

use crate::columns::NO_COLUMN;
use crate::reason::Reason;
use crate::scan;
use crate::strict;
use crate::table::Table;
use crate::unescape;
use jiter::{Jiter, JiterError};
use std::ops::Range;

#[derive(Default)]
pub struct RowParser {
    /// jiter's buffer for keys with escapes, reused for every line.
    tape: Vec<u8>,
    /// The buffer for values with escapes, reused for every line.
    unescaped: String,
}

/// The fast path does not accept the line: the strict validator must decide.
struct Fallback;

impl From<JiterError> for Fallback {
    fn from(_: JiterError) -> Self {
        Fallback
    }
}

impl RowParser {
    /// Writes the row without committing it. After an error the table is unchanged.
    pub fn parse(&mut self, line: &[u8], table: &mut Table) -> Result<(), Reason> {
        let line = simdutf8::basic::from_utf8(line).map_err(|_| Reason::InvalidUtf8)?;
        if self.parse_fast(line, table).is_ok() {
            return Ok(());
        }
        table.rollback();
        parse_strict(line, table).inspect_err(|_| table.rollback())
    }

    fn parse_fast(&mut self, line: &str, table: &mut Table) -> Result<(), Fallback> {
        let bytes = line.as_bytes();
        let control_characters = bytes.iter().fold(false, |found, byte| found | (*byte < b' '));
        let mut position = 0;
        let mut first = true;
        loop {
            if !first && matches!(&bytes[position..], b"}" | b"}\r") {
                return Ok(());
            }
            let is_new = if let Some((column, value_start)) = find_simple_key(line, position, first, table) {
                position = value_start;
                match scan_simple_value(bytes, position, control_characters) {
                    Some((SimpleValue::Text(span), end)) => {
                        position = end;
                        table.put_prefix(column, &bytes[span.start..], span.len())
                    }
                    Some((SimpleValue::Null, end)) => {
                        position = end;
                        table.put_null(column)
                    }
                    None => self.put_next_value(line, &mut position, table, column)?,
                }
            } else {
                let mut jiter = Jiter::with_tape(&bytes[position..], std::mem::take(&mut self.tape));
                let Some(key) = (if first { jiter.next_object()? } else { jiter.next_key()? }) else {
                    return Ok(jiter.finish()?);
                };
                let column = table.columns().find_or_add(key);
                let rescued_key = (column == NO_COLUMN).then(|| key.to_owned());
                let member_start = position;
                position += jiter.current_index();
                self.tape = jiter.into_tape();
                match rescued_key {
                    None => self.put_next_value(line, &mut position, table, column)?,
                    Some(key) => {
                        let raw_key = raw_key(&bytes[member_start..position]);
                        table.rescue(&key, raw_key, next_value(line, &mut position)?.as_bytes())
                    }
                }
            };
            if !is_new {
                return Err(Fallback);
            }
            first = false;
        }
    }

    fn put_next_value(
        &mut self,
        line: &str,
        position: &mut usize,
        table: &mut Table,
        column: u32,
    ) -> Result<bool, Fallback> {
        put_raw_value(next_value(line, position)?, &mut self.unescaped, table, column).ok_or(Fallback)
    }
}

/// The next value verbatim, without the white space before it; `position` moves to its end.
fn next_value<'a>(line: &'a str, position: &mut usize) -> Result<&'a str, Fallback> {
    let mut jiter = Jiter::new(&line.as_bytes()[*position..]);
    let peek = jiter.peek()?;
    let start = *position + jiter.current_index();
    jiter.known_skip(peek)?;
    *position += jiter.current_index();
    Ok(&line[start..*position])
}

/// Writes a valid JSON value: `Some` of what `Table::put` returns, or None if it is a string with a lone surrogate.
fn put_raw_value(raw_value: &str, unescaped: &mut String, table: &mut Table, column: u32) -> Option<bool> {
    if raw_value == "null" {
        return Some(table.put_null(column));
    }
    let Some(literal) = raw_value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Some(table.put(column, raw_value.as_bytes()));
    };
    unescaped.clear();
    unescape::unescape_into(literal, unescaped)?;
    Some(table.put(column, unescaped.as_bytes()))
}

/// The column of the next member and the position after its colon, if a known key without escapes comes right after the
/// brace or comma, or after one space.
///
/// It compares the predicted key first, which costs less than a hash table, which costs less than parsing the key.
#[inline]
fn find_simple_key(line: &str, position: usize, first: bool, table: &mut Table) -> Option<(u32, usize)> {
    let rest = line.as_bytes()[position..].strip_prefix(if first { b"{" } else { b"," })?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    let start = line.len() - rest.len();
    if let Some((column, key_literal)) = table.columns().prediction()
        && scan::starts_with_key(rest, key_literal)
    {
        return Some((column, start + key_literal.len()));
    }
    let key = rest.strip_prefix(b"\"")?;
    let length = memchr::memchr(b'"', key)?;
    if key.get(length + 1) != Some(&b':') {
        return None;
    }
    let column = table.columns().find_unescaped(&line[start + 1..start + 1 + length])?;
    Some((column, start + length + 3))
}

/// A value that needs no unescaping and comes right after the colon, or after one space.
enum SimpleValue {
    /// The positions of its text in the line.
    Text(Range<usize>),
    Null,
}

/// The simple value at `position`, and the position after it.
///
/// A string without escapes is only valid without control characters: on a line that has any, no string is simple.
#[inline]
fn scan_simple_value(line: &[u8], position: usize, control_characters: bool) -> Option<(SimpleValue, usize)> {
    let position = position + usize::from(line.get(position) == Some(&b' '));
    let rest = line.get(position..)?;
    let text = |length| Some((SimpleValue::Text(position..position + length), position + length));
    match rest.first()? {
        b'"' if !control_characters => {
            let length = scan::find_quote_or_backslash(&rest[1..])?;
            let span = position + 1..position + 1 + length;
            (rest[1 + length] == b'"').then_some((SimpleValue::Text(span), position + length + 2))
        }
        b'-' | b'0'..=b'9' => text(scan::number_length(rest)?),
        b't' if rest.starts_with(b"true") => text(4),
        b'f' if rest.starts_with(b"false") => text(5),
        b'n' if rest.starts_with(b"null") => Some((SimpleValue::Null, position + 4)),
        b'{' | b'[' if !control_characters => text(strict::value_length(rest)?),
        _ => None,
    }
}

/// The key with its quotes. `member` starts after the previous member and ends with the colon: white space, comma or
/// brace, key, colon.
fn raw_key(member: &[u8]) -> &[u8] {
    let start = member.iter().position(|byte| *byte == b'"').unwrap_or(0);
    let end = member.iter().rposition(|byte| *byte == b'"').unwrap_or(start);
    &member[start..=end]
}

/// After an error the table still has the part of the row that was written.
fn parse_strict(line: &str, table: &mut Table) -> Result<(), Reason> {
    let mut unescaped = String::new();
    strict::visit_members(line, |key, key_span, value_span| {
        let raw_value = &line[value_span];
        let column = table.columns().find_or_add(key);
        if column == NO_COLUMN {
            return table.rescue(key, &line.as_bytes()[key_span], raw_value.as_bytes());
        }
        // The visited value has no lone surrogate.
        put_raw_value(raw_value, &mut unescaped, table, column).unwrap_or(false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Batch;

    fn parse_all(lines: &[&str], strictly: bool) -> (Vec<Result<(), Reason>>, Batch) {
        let (mut parser, mut table) = (RowParser::default(), Table::new(Vec::new(), 3, false));
        let parse = |line: &&str| {
            let outcome =
                if strictly { parse_strict(line, &mut table) } else { parser.parse(line.as_bytes(), &mut table) };
            match outcome {
                Ok(()) => table.commit("", None, 0),
                Err(_) => table.rollback(),
            }
            outcome
        };
        (lines.iter().map(parse).collect(), table.take_batch().unwrap())
    }

    #[test]
    fn the_fast_path_and_the_strict_validator_agree() {
        let lines = [
            r#"{"a":1,"b":"x","c":null}"#,
            r#"{"a": 1.10, "b": "\u00e9\n", "c": [1, {"d": 2}]}"#,
            r#"{"b":true,"a":false}"#,
            r#" { "a" : {} , "b" : "" } "#,
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"d":1,"\u0064":2}"#,
            r#"{"d" : "x\n","e":[ ],"a":0}"#,
            r#"{"a":1,"b":2,}"#,
            r#"{"a":"\ud800","new":1}"#,
            r#"{"a":["\ud800"]}"#,
            r#"{"a":"é","b\"":1}"#,
            "{\"a\":1,\"b\":\"x\ty\"}",
            "{\"a\":1,\t\"b\":\"x\"}",
            r#"{"a": "x" ,"b":"y\"","c":"z"}"#,
        ];
        let deep = |levels| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let (deepest, too_deep) = (deep(strict::MAX_DEPTH - 1), deep(strict::MAX_DEPTH));
        let lines = [&lines[..], &[&deepest, &too_deep]].concat();
        let (fast, fast_batch) = parse_all(&lines, false);
        let (strict, strict_batch) = parse_all(&lines, true);
        assert_eq!(fast[fast.len() - 2..], [Ok(()), Err(Reason::TooDeep)]);
        assert_eq!(fast, strict);
        assert_eq!(fast.iter().filter(|outcome| outcome.is_ok()).count(), fast_batch.rows);
        assert_eq!(fast_batch.names, ["_rescued", "a", "b", "c"]);
        assert_eq!(fast_batch.names, strict_batch.names);
        for (fast, strict) in fast_batch.columns.iter().zip(&strict_batch.columns) {
            let (fast, strict) = (fast.as_ref().unwrap(), strict.as_ref().unwrap());
            assert_eq!((&fast.plain, &fast.validity), (&strict.plain, &strict.validity));
        }
    }

    #[test]
    fn invalid_utf8_is_found_before_invalid_json() {
        let mut table = Table::new(Vec::new(), 3, false);
        assert_eq!(RowParser::default().parse(b"{\xff", &mut table), Err(Reason::InvalidUtf8));
        assert!(table.take_batch().is_none());
    }
}
