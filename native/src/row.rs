//! One line into one row of the table: plain members by a look at their bytes, everything else by jiter, and what jiter
//! refuses by the exact judge.

use crate::columns::NONE;
use crate::reason::Reason;
use crate::scan;
use crate::strict;
use crate::table::Table;
use crate::unescape;
use jiter::{Jiter, JiterError};
use std::ops::Range;

#[derive(Default)]
pub struct RowParser {
    /// jiter's buffer for keys with escapes, kept from line to line.
    tape: Vec<u8>,
    /// Ours for values with escapes.
    unescaped: String,
}

/// The quick way does not know what to do with this line.
struct Unsure;

impl From<JiterError> for Unsure {
    fn from(_: JiterError) -> Self {
        Unsure
    }
}

impl RowParser {
    /// Writes the row, without committing it; after an error the table is as it was before.
    pub fn parse(&mut self, line: &[u8], table: &mut Table) -> Result<(), Reason> {
        let line = simdutf8::basic::from_utf8(line).map_err(|_| Reason::InvalidUtf8)?;
        if self.quick(line, table).is_ok() {
            return Ok(());
        }
        table.rollback();
        exact(line, table)
    }

    fn quick(&mut self, line: &str, table: &mut Table) -> Result<(), Unsure> {
        let bytes = line.as_bytes();
        let controls = bytes.iter().fold(false, |found, byte| found | (*byte < b' '));
        let mut at = 0;
        let mut first = true;
        loop {
            if !first && matches!(&bytes[at..], b"}" | b"}\r") {
                return Ok(());
            }
            let fresh = if let Some((column, value)) = plain_member(line, at, first, table) {
                at = value;
                match plain_value(bytes, at, controls) {
                    Some((Plain::Value(span), behind)) => {
                        at = behind;
                        table.put_within(column, &bytes[span.start..], span.len())
                    }
                    Some((Plain::Null, behind)) => {
                        at = behind;
                        table.put_null(column)
                    }
                    None => self.put_value(line, &mut at, table, column)?,
                }
            } else {
                let mut jiter = Jiter::with_tape(&bytes[at..], std::mem::take(&mut self.tape));
                let Some(key) = (if first { jiter.next_object()? } else { jiter.next_key()? }) else {
                    return Ok(jiter.finish()?);
                };
                let column = table.columns().column_of(key);
                let rescued_key = (column == NONE).then(|| key.to_owned());
                let member = at;
                at += jiter.current_index();
                self.tape = jiter.into_tape();
                match rescued_key {
                    None => self.put_value(line, &mut at, table, column)?,
                    Some(key) => {
                        let raw_key = raw_key(&bytes[member..at]);
                        table.rescue(&key, raw_key, next_value(line, &mut at)?.as_bytes())
                    }
                }
            };
            if !fresh {
                return Err(Unsure);
            }
            first = false;
        }
    }

    fn put_value(&mut self, line: &str, at: &mut usize, table: &mut Table, column: u32) -> Result<bool, Unsure> {
        put_raw(next_value(line, at)?, &mut self.unescaped, table, column).ok_or(Unsure)
    }
}

/// The value that comes next as it stands, with whatever white space before it; `at` moves behind it.
fn next_value<'a>(line: &'a str, at: &mut usize) -> Result<&'a str, Unsure> {
    let mut jiter = Jiter::new(&line.as_bytes()[*at..]);
    let peek = jiter.peek()?;
    let start = *at + jiter.current_index();
    jiter.known_skip(peek)?;
    *at += jiter.current_index();
    Ok(&line[start..*at])
}

/// Writes a valid value as it stands in the line; None if it is a string with a lone surrogate.
fn put_raw(raw_value: &str, unescaped: &mut String, table: &mut Table, column: u32) -> Option<bool> {
    if raw_value == "null" {
        return Some(table.put_null(column));
    }
    let Some(inside) = raw_value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Some(table.put(column, raw_value.as_bytes()));
    };
    unescaped.clear();
    unescape::unescape_into(inside, unescaped)?;
    Some(table.put(column, unescaped.as_bytes()))
}

/// A member whose key is known and stands here as it usually does, right behind the brace or comma or one space after
/// it: its column and where its value starts. The column that followed last time is tried first: comparing bytes costs
/// less than finding a key, and finding one less than reading it.
#[inline]
fn plain_member(line: &str, at: usize, first: bool, table: &mut Table) -> Option<(u32, usize)> {
    let rest = line.as_bytes()[at..].strip_prefix(if first { b"{" } else { b"," })?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    let start = line.len() - rest.len();
    if let Some((column, key)) = table.columns().guess()
        && scan::begins_with(rest, key)
    {
        return Some((column, start + key.len()));
    }
    let inside = rest.strip_prefix(b"\"")?;
    let length = memchr::memchr(b'"', inside)?;
    if inside.get(length + 1) != Some(&b':') {
        return None;
    }
    let column = table.columns().plain_column(&line[start + 1..start + 1 + length])?;
    Some((column, start + length + 3))
}

/// A value that stands right here, or one space on, and needs no unescaping.
enum Plain {
    /// Where its characters begin and end in the line.
    Value(Range<usize>),
    Null,
}

/// The plain value that stands here and where the line goes on behind it. On a line without control characters nothing
/// is wrong with a string without escapes.
#[inline]
fn plain_value(line: &[u8], at: usize, controls: bool) -> Option<(Plain, usize)> {
    let at = at + usize::from(line.get(at) == Some(&b' '));
    let rest = line.get(at..)?;
    let word = |length| Some((Plain::Value(at..at + length), at + length));
    match rest.first()? {
        b'"' if !controls => {
            let length = scan::quote_or_backslash(&rest[1..])?;
            (rest[1 + length] == b'"').then_some((Plain::Value(at + 1..at + 1 + length), at + length + 2))
        }
        b'-' | b'0'..=b'9' => word(scan::number(rest)?),
        b't' if rest.starts_with(b"true") => word(4),
        b'f' if rest.starts_with(b"false") => word(5),
        b'n' if rest.starts_with(b"null") => Some((Plain::Null, at + 4)),
        b'{' | b'[' if !controls => word(strict::length_of_value(rest)?),
        _ => None,
    }
}

/// `member` runs from the end of the previous member to the colon: white space, comma or brace, key, colon.
fn raw_key(member: &[u8]) -> &[u8] {
    let start = member.iter().position(|byte| *byte == b'"').unwrap_or(0);
    let end = member.iter().rposition(|byte| *byte == b'"').unwrap_or(start);
    &member[start..=end]
}

fn exact(line: &str, table: &mut Table) -> Result<(), Reason> {
    let mut unescaped = String::new();
    for member in strict::members(line)? {
        let raw_value = &line[member.raw_value];
        let column = table.columns().column_of(&member.key);
        let fresh = if column == NONE {
            table.rescue(&member.key, &line.as_bytes()[member.raw_key], raw_value.as_bytes())
        } else {
            put_raw(raw_value, &mut unescaped, table, column).ok_or(Reason::LoneSurrogate)?
        };
        if !fresh {
            table.rollback();
            return Err(Reason::DuplicateKey);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Batch;

    fn rows(lines: &[&str], exactly: bool) -> (Vec<Result<(), Reason>>, Batch) {
        let (mut parser, mut table) = (RowParser::default(), Table::new(Vec::new(), 3, false));
        let parse = |line: &&str| {
            let outcome = if exactly { exact(line, &mut table) } else { parser.parse(line.as_bytes(), &mut table) };
            if outcome.is_ok() {
                table.commit("", None, 0);
            }
            outcome
        };
        (lines.iter().map(parse).collect(), table.take().unwrap())
    }

    #[test]
    fn the_quick_way_and_the_exact_one_agree() {
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
        let ((quick, quick_batch), (exact, exact_batch)) = (rows(&lines, false), rows(&lines, true));
        assert_eq!(quick[quick.len() - 2..], [Ok(()), Err(Reason::TooDeep)]);
        assert_eq!(quick, exact);
        assert_eq!(quick.iter().filter(|outcome| outcome.is_ok()).count(), quick_batch.rows);
        assert_eq!(quick_batch.names, ["_rescued", "a", "b", "c"]);
        assert_eq!(quick_batch.names, exact_batch.names);
        for (one, other) in quick_batch.columns.iter().zip(&exact_batch.columns) {
            let (one, other) = (one.as_ref().unwrap(), other.as_ref().unwrap());
            assert_eq!((&one.plain, &one.present), (&other.plain, &other.present));
        }
    }

    #[test]
    fn broken_utf8_is_seen_before_broken_json() {
        let mut table = Table::new(Vec::new(), 3, false);
        assert_eq!(RowParser::default().parse(b"{\xff", &mut table), Err(Reason::InvalidUtf8));
        assert!(table.take().is_none());
    }
}
