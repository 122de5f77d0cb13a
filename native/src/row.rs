//! One line into one row of the table: jiter for nearly all lines, the exact judge for those it refuses.

use crate::reason::Reason;
use crate::strict;
use crate::table::{NONE, Table};
use jiter::{Jiter, Peek};

#[derive(Default)]
pub struct RowParser {
    /// jiter's buffer for strings with escapes, kept from line to line.
    tape: Vec<u8>,
}

/// The quick way does not know what to do with this line.
struct Unsure;

impl<E: std::error::Error> From<E> for Unsure {
    fn from(_: E) -> Self {
        Unsure
    }
}

impl RowParser {
    /// Writes the row, without committing it; after an error the table is as it was before.
    pub fn parse(&mut self, line: &[u8], table: &mut Table) -> Result<(), Reason> {
        let text = simdutf8::basic::from_utf8(line).map_err(|_| Reason::InvalidUtf8)?;
        let mut jiter = Jiter::with_tape(line, std::mem::take(&mut self.tape));
        let outcome = quick(&mut jiter, line, table);
        self.tape = jiter.into_tape();
        if outcome.is_ok() {
            return Ok(());
        }
        table.rollback();
        exact(text, table)
    }
}

fn quick(jiter: &mut Jiter<'_>, line: &[u8], table: &mut Table) -> Result<(), Unsure> {
    let mut member_start = 0;
    let mut key = jiter.next_object()?;
    while let Some(text) = key {
        let column = table.column_of(text);
        let fresh = if column == NONE {
            let key = text.to_owned();
            let raw_key = raw_key(&line[member_start..jiter.current_index()]);
            let peek = jiter.peek()?;
            let start = jiter.current_index();
            if peek == Peek::String {
                // Also checks for lone surrogates, as known_skip does.
                jiter.known_str()?;
            } else {
                jiter.known_skip(peek)?;
            }
            table.rescue(&key, raw_key, jiter.slice_to_current(start))
        } else {
            put_value(jiter, table, column)?
        };
        if !fresh {
            return Err(Unsure);
        }
        member_start = jiter.current_index();
        key = jiter.next_key()?;
    }
    jiter.finish()?;
    Ok(())
}

#[inline]
fn put_value(jiter: &mut Jiter<'_>, table: &mut Table, column: u32) -> Result<bool, Unsure> {
    let peek = jiter.peek()?;
    Ok(match peek {
        Peek::String => table.put(column, jiter.known_str()?.as_bytes()),
        Peek::Null => {
            jiter.known_null()?;
            table.put_null(column)
        }
        Peek::True | Peek::False => {
            let word: &[u8] = if jiter.known_bool(peek)? { b"true" } else { b"false" };
            table.put(column, word)
        }
        Peek::Object | Peek::Array => {
            let start = jiter.current_index();
            jiter.known_skip(peek)?;
            table.put(column, jiter.slice_to_current(start))
        }
        _ => table.put(column, jiter.known_number_bytes(peek)?),
    })
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
