//! One line into one row of the table: jiter for nearly all lines, the exact judge for those it refuses.

use crate::reason::Reason;
use crate::strict;
use crate::table::{NONE, Table};
use jiter::{Jiter, JiterError, Peek};

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
            let fresh = if let Some((column, value)) = plain_member(line, at, first, table) {
                at = value;
                match plain_string(bytes, at).filter(|_| !controls) {
                    Some((inside, behind)) => {
                        at = behind;
                        table.put(column, inside)
                    }
                    None => self.put_value(line, &mut at, table, column)?,
                }
            } else {
                let mut jiter = Jiter::with_tape(&bytes[at..], std::mem::take(&mut self.tape));
                let Some(key) = (if first { jiter.next_object()? } else { jiter.next_key()? }) else {
                    return Ok(jiter.finish()?);
                };
                let column = table.column_of(key);
                let rescued_key = (column == NONE).then(|| key.to_owned());
                let member = at;
                at += jiter.current_index();
                self.tape = jiter.into_tape();
                match rescued_key {
                    None => self.put_value(line, &mut at, table, column)?,
                    Some(key) => {
                        let raw_key = raw_key(&bytes[member..at]);
                        let mut jiter = Jiter::new(&bytes[at..]);
                        let peek = jiter.peek()?;
                        let start = jiter.current_index();
                        jiter.known_skip(peek)?;
                        at += jiter.current_index();
                        table.rescue(&key, raw_key, jiter.slice_to_current(start))
                    }
                }
            };
            if !fresh {
                return Err(Unsure);
            }
            first = false;
        }
    }

    #[inline]
    fn put_value(&mut self, line: &str, at: &mut usize, table: &mut Table, column: u32) -> Result<bool, Unsure> {
        let mut jiter = Jiter::new(&line.as_bytes()[*at..]);
        let peek = jiter.peek()?;
        let start = jiter.current_index();
        let fresh = match peek {
            Peek::String => {
                // Not known_str: it would check the UTF-8 of a line known to be valid once more, slowly.
                let inside = jiter.known_bytes()?;
                if memchr::memchr(b'\\', inside).is_none() {
                    table.put(column, inside)
                } else {
                    let inside = &line[*at + start + 1..*at + start + 1 + inside.len()];
                    self.unescaped.clear();
                    strict::unescape_into(inside, &mut self.unescaped).ok_or(Unsure)?;
                    table.put(column, self.unescaped.as_bytes())
                }
            }
            Peek::Null => {
                jiter.known_null()?;
                table.put_null(column)
            }
            Peek::True | Peek::False => {
                let word: &[u8] = if jiter.known_bool(peek)? { b"true" } else { b"false" };
                table.put(column, word)
            }
            Peek::Object | Peek::Array => {
                jiter.known_skip(peek)?;
                table.put(column, jiter.slice_to_current(start))
            }
            _ => table.put(column, jiter.known_number_bytes(peek)?),
        };
        *at += jiter.current_index();
        Ok(fresh)
    }
}

/// A member whose key is known and stands here as it usually does, right behind the brace or comma or one space after
/// it: its column and where its value starts. The column that followed last time is tried first: comparing bytes costs
/// less than finding a key, and finding one less than reading it.
#[inline]
fn plain_member(line: &str, at: usize, first: bool, table: &mut Table) -> Option<(u32, usize)> {
    let rest = line.as_bytes()[at..].strip_prefix(if first { b"{" } else { b"," })?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    let start = line.len() - rest.len();
    if let Some((column, key)) = table.guess()
        && rest.starts_with(key)
    {
        return Some((column, start + key.len()));
    }
    let inside = rest.strip_prefix(b"\"")?;
    let length = memchr::memchr(b'"', inside)?;
    if inside.get(length + 1) != Some(&b':') {
        return None;
    }
    let column = table.plain_column(&line[start + 1..start + 1 + length])?;
    Some((column, start + length + 3))
}

/// The inside of the string that stands here, or one space on, if it has no escapes, and where the line goes on. On a
/// line without control characters nothing else can be wrong with it.
#[inline]
fn plain_string(line: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = &line[at..];
    let rest = rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"\"")?;
    let length = memchr::memchr2(b'"', b'\\', rest)?;
    (rest[length] == b'"').then(|| (&rest[..length], line.len() - rest.len() + length + 1))
}

/// `member` runs from the end of the previous member to the colon: white space, comma or brace, key, colon.
fn raw_key(member: &[u8]) -> &[u8] {
    let start = member.iter().position(|byte| *byte == b'"').unwrap_or(0);
    let end = member.iter().rposition(|byte| *byte == b'"').unwrap_or(start);
    &member[start..=end]
}

fn exact(line: &str, table: &mut Table) -> Result<(), Reason> {
    for member in strict::members(line)? {
        let raw_value = &line[member.raw_value];
        let column = table.column_of(&member.key);
        let fresh = if column == NONE {
            table.rescue(&member.key, &line.as_bytes()[member.raw_key], raw_value.as_bytes())
        } else if raw_value == "null" {
            table.put_null(column)
        } else if raw_value.starts_with('"') {
            let text = strict::unescape(raw_value);
            table.put(column, text.as_deref().unwrap_or(raw_value).as_bytes())
        } else {
            table.put(column, raw_value.as_bytes())
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
                table.commit("", 0);
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
        let ((quick, quick_batch), (exact, exact_batch)) = (rows(&lines, false), rows(&lines, true));
        assert_eq!(quick, exact);
        assert_eq!(quick.iter().filter(|outcome| outcome.is_ok()).count(), quick_batch.rows);
        assert_eq!(quick_batch.names, ["_rescued", "a", "b", "c"]);
        assert_eq!(quick_batch.names, exact_batch.names);
        for (one, other) in quick_batch.columns.iter().zip(&exact_batch.columns) {
            let (one, other) = (one.as_ref().unwrap(), other.as_ref().unwrap());
            assert_eq!((&one.data, &one.offsets), (&other.data, &other.offsets));
        }
    }

    #[test]
    fn broken_utf8_is_seen_before_broken_json() {
        let mut table = Table::new(Vec::new(), 3, false);
        assert_eq!(RowParser::default().parse(b"{\xff", &mut table), Err(Reason::InvalidUtf8));
        assert!(table.take().is_none());
    }
}
