//! Cuts a JSON array into its elements, or concatenated JSON values into the values.
//!
//! Only strings and brackets decide where an element ends; the parser decides whether it is a row. So an element that is
//! not JSON does not end its neighbors:
//! - JSON has no newline in a string. A string that is not closed ends with its line, and the element with it.
//! - A closing bracket closes the innermost open bracket of its kind, and all opened after it. If the element has
//!   none, "]" closes the array, and any other bracket is a part of the element.

use crate::next_line::NextLine;
use crate::strict::{MAX_DEPTH, OpenBrackets};

/// Precedes each value of a JSON text sequence (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;

pub struct Elements {
    /// Values need no array around them.
    concatenated: bool,
    place: Place,
    open: OpenElement,
    /// The byte offset of the next byte of the file.
    offset: u64,
    /// The byte offset of the current element.
    start: u64,
    /// The byte offset after the last byte of the current element that is not white space.
    end: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside of arrays and values.
    Outside,
    /// After the opening bracket of an array.
    First,
    /// After a comma between elements.
    Next,
    /// After an element that ended with its line: a comma can follow.
    AfterLine,
    /// In an element of an array.
    Element,
    /// In an object outside of arrays.
    Object,
    /// In anything else outside of arrays.
    Text,
    /// After an array that is not followed by another array.
    Lines,
}

/// The brackets and the string that are open in the current element.
#[derive(Default)]
struct OpenElement {
    brackets: OpenBrackets,
    objects: usize,
    /// Open brackets beyond `MAX_DEPTH`.
    excess: u64,
    in_string: bool,
    after_backslash: bool,
}

impl OpenElement {
    fn is_empty(&self) -> bool {
        self.brackets.depth == 0
    }

    fn push(&mut self, is_object: bool) {
        if self.brackets.depth == MAX_DEPTH {
            self.excess += 1;
        } else {
            self.brackets.push(is_object);
            self.objects += usize::from(is_object);
        }
    }

    /// Closes the innermost bracket of this kind; false if none is open.
    fn close(&mut self, is_object: bool) -> bool {
        if self.excess > 0 {
            self.excess -= 1;
            return true;
        }
        let count = if is_object { self.objects } else { self.brackets.depth - self.objects };
        if count == 0 {
            return false;
        }
        while let Some(innermost) = self.brackets.innermost() {
            self.brackets.depth -= 1;
            self.objects -= usize::from(innermost);
            if innermost == is_object {
                break;
            }
        }
        true
    }
}

/// Where an element ends in the bytes, how many bytes after it are skipped, and the place that follows.
struct Ending {
    length: usize,
    skip: usize,
    place: Place,
}

impl Elements {
    /// `offset` is the byte offset of the first byte that is passed to `next`.
    pub fn new(offset: u64, concatenated: bool) -> Self {
        let open = OpenElement::default();
        Self { concatenated, place: Place::Outside, open, offset, start: offset, end: offset }
    }

    /// The byte offset of the next byte of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The byte offset of the element that was returned last.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Whether the array is closed and the rest of the file, from `offset` on, consists of lines.
    pub fn lines_follow(&self) -> bool {
        self.place == Place::Lines
    }

    /// Cuts the next element off the bytes from `position` on, without the white space around it.
    ///
    /// An element is empty if a comma has no element before or after it. `carry` has the first bytes of an element that
    /// begins in an earlier block, at most `max_bytes`.
    pub fn next<'a>(
        &mut self,
        bytes: &'a [u8],
        position: &mut usize,
        carry: &mut Vec<u8>,
        max_bytes: usize,
    ) -> NextLine<'a> {
        while *position < bytes.len() && self.place != Place::Lines {
            if !self.is_in_element() {
                let rest = &bytes[*position..];
                let blank = rest.iter().take_while(|byte| is_white_space(**byte)).count();
                self.skip(blank, position);
                match rest.get(blank) {
                    Some(byte) if self.ends_nothing(*byte) => {
                        self.start = self.offset;
                        self.skip(1, position);
                        self.place = if *byte == b',' { Place::Next } else { Place::Outside };
                        return NextLine::Line(&[]);
                    }
                    Some(byte) => self.begin(*byte, position),
                    None => {}
                }
                continue;
            }
            let rest = &bytes[*position..];
            let ending = self.find_end(rest);
            let piece = &rest[..ending.as_ref().map_or(rest.len(), |ending| ending.length)];
            let trimmed = piece.len() - piece.iter().rev().take_while(|byte| is_white_space(**byte)).count();
            if trimmed > 0 {
                self.end = self.offset + trimmed as u64;
            }
            let is_whole = carry.is_empty() && ending.is_some();
            if !is_whole {
                carry.extend_from_slice(&piece[..piece.len().min(max_bytes - carry.len())]);
            }
            self.skip(piece.len(), position);
            let Some(ending) = ending else { continue };
            self.skip(ending.skip, position);
            self.place = ending.place;
            return if !is_whole {
                self.carried(carry, max_bytes)
            } else if trimmed > max_bytes {
                NextLine::TooLong(trimmed as u64)
            } else {
                NextLine::Line(&piece[..trimmed])
            };
        }
        NextLine::Nothing
    }

    /// Call it at the end of the file until it returns `Nothing`: it returns the element that the end cuts off, and an
    /// empty one if the array is not closed.
    pub fn last(&mut self, carry: &mut Vec<u8>, max_bytes: usize) -> NextLine<'static> {
        match self.place {
            Place::Outside | Place::Lines => NextLine::Nothing,
            Place::First | Place::Next | Place::AfterLine => {
                self.place = Place::Outside;
                self.start = self.offset;
                NextLine::Line(&[])
            }
            Place::Element | Place::Object | Place::Text => {
                self.place = if self.place == Place::Element { Place::Next } else { Place::Outside };
                self.carried(carry, max_bytes)
            }
        }
    }

    fn is_in_element(&self) -> bool {
        matches!(self.place, Place::Element | Place::Object | Place::Text)
    }

    fn skip(&mut self, length: usize, position: &mut usize) {
        *position += length;
        self.offset += length as u64;
    }

    fn carried(&self, carry: &mut Vec<u8>, max_bytes: usize) -> NextLine<'static> {
        let length = self.end - self.start;
        if length > max_bytes as u64 {
            *carry = Vec::new();
            return NextLine::TooLong(length);
        }
        carry.truncate(usize::try_from(length).expect("not more than max_bytes"));
        NextLine::Carried
    }

    /// Whether this byte ends an element that has no bytes.
    fn ends_nothing(&self, byte: u8) -> bool {
        match self.place {
            Place::First => byte == b',',
            Place::Next => matches!(byte, b',' | b']'),
            _ => false,
        }
    }

    /// Continues at a byte that is not white space, between two elements.
    fn begin(&mut self, byte: u8, position: &mut usize) {
        self.place = match (self.place, byte) {
            (Place::Outside, b'[') => Place::First,
            (Place::First | Place::AfterLine, b']') => Place::Outside,
            (Place::AfterLine, b',') => Place::Next,
            (Place::Outside, RECORD_SEPARATOR) if self.concatenated => Place::Outside,
            (Place::Outside, _) if !self.concatenated => Place::Lines,
            (place, _) => {
                self.start = self.offset;
                self.open = OpenElement::default();
                self.place = match (place, byte) {
                    (Place::Outside, b'{') => Place::Object,
                    (Place::Outside, _) => Place::Text,
                    _ => Place::Element,
                };
                return;
            }
        };
        if self.place != Place::Lines {
            self.skip(1, position);
        }
    }

    /// The end of the current element; None if it is not in these bytes.
    fn find_end(&mut self, bytes: &[u8]) -> Option<Ending> {
        let after_line = if self.place == Place::Element { Place::AfterLine } else { Place::Outside };
        let end = |length, skip, place| Some(Ending { length, skip, place });
        let mut position = 0;
        while position < bytes.len() {
            if self.open.in_string {
                if std::mem::take(&mut self.open.after_backslash) && bytes[position] != b'\n' {
                    position += 1;
                    continue;
                }
                position += memchr::memchr3(b'"', b'\\', b'\n', &bytes[position..])?;
                match bytes[position] {
                    b'"' => self.open.in_string = false,
                    b'\\' => self.open.after_backslash = true,
                    _ => return end(position, 1, after_line),
                }
            } else {
                position += bytes[position..].iter().position(|byte| DECISIVE[usize::from(*byte)])?;
                match bytes[position] {
                    b'"' => self.open.in_string = true,
                    b'{' | b'[' if self.place == Place::Text => return end(position, 0, Place::Outside),
                    bracket @ (b'{' | b'[') => self.open.push(bracket == b'{'),
                    b'\n' if self.place == Place::Text => return end(position, 1, Place::Outside),
                    b',' if self.place == Place::Element && self.open.is_empty() => {
                        return end(position, 1, Place::Next);
                    }
                    bracket @ (b'}' | b']') => {
                        let closed = self.open.close(bracket == b'}');
                        if !closed && bracket == b']' && self.place == Place::Element {
                            return end(position, 1, Place::Outside);
                        }
                        if self.place == Place::Object && self.open.is_empty() {
                            return end(position + 1, 0, Place::Outside);
                        }
                    }
                    _ => {}
                }
            }
            position += 1;
        }
        None
    }
}

/// The bytes outside of strings that can end an element, or decide where it ends.
const DECISIVE: [bool; 256] = {
    let mut table = [false; 256];
    let mut index = 0;
    while index < table.len() {
        table[index] = matches!(index as u8, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b'\n');
        index += 1;
    }
    table
};

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset and text of each element, and the offset of the lines after them, if there are any.
    fn cut(text: &str, block: usize, concatenated: bool) -> (Vec<(u64, String)>, Option<u64>) {
        let mut elements = Elements::new(0, concatenated);
        let (mut found, mut carry) = (Vec::new(), Vec::new());
        let mut keep = |elements: &Elements, line: NextLine<'_>, carry: &mut Vec<u8>| {
            let bytes = match line {
                NextLine::Line(piece) => piece.to_vec(),
                NextLine::Carried => std::mem::take(carry),
                NextLine::TooLong(length) => format!("{length} bytes").into_bytes(),
                NextLine::Nothing => return false,
            };
            found.push((elements.start(), String::from_utf8(bytes).unwrap()));
            true
        };
        for bytes in text.as_bytes().chunks(block) {
            let mut position = 0;
            while position < bytes.len() && !elements.lines_follow() {
                let line = elements.next(bytes, &mut position, &mut carry, 12);
                keep(&elements, line, &mut carry);
            }
        }
        loop {
            let line = elements.last(&mut carry, 12);
            if !keep(&elements, line, &mut carry) {
                break;
            }
        }
        (found, elements.lines_follow().then(|| elements.offset()))
    }

    #[test]
    fn elements_are_the_same_for_every_size_of_the_blocks() {
        for (text, concatenated, expected) in [
            ("[]", false, "-"),
            ("[1]", false, "1@1"),
            ("[ {\"a\":1} ,\n[2] ]\n", false, "{\"a\":1}@2 [2]@12"),
            ("[\"],\\\"\",{}]", false, "\"],\\\"\"@1 {}@8"),
            ("[1,]", false, "1@1 @3"),
            ("[,1]", false, "@1 1@2"),
            ("[", false, "@1"),
            ("[1", false, "1@1 @2"),
            ("[1, ", false, "1@1 @4"),
            ("[{\"a\":1}] [2]", false, "{\"a\":1}@1 2@11"),
            ("[1] x [2]", false, "1@1 ...4"),
            ("[{\"a\":[1},2]", false, "{\"a\":[1}@1 2@10"),
            ("[{]\n{}", false, "{@1 ...4"),
            ("[}1]", false, "}1@1"),
            ("[\"x,\n{}, 1]", false, "\"x,@1 {}@5 1@9"),
            ("[\"x\\\n,{}]", false, "\"x\\@1 {}@6"),
            ("[\"x\n]", false, "\"x@1"),
            ("[   \"123456789012\" , 1]", false, "14 bytes@4 1@21"),
            ("{}{\"a\":\"}\"}\n\n [{}]x{}", true, "{}@0 {\"a\":\"}\"}@2 {}@15 x@18 {}@19"),
            ("{\"a\":1,", true, "{\"a\":1,@0"),
            ("a{}b\nc", true, "a@0 {}@1 b@3 c@5"),
            ("\x1e{}\n\x1e\x1e[1]\x1ea", true, "{}@1 1@7 a@10"),
        ] {
            for block in 1..=text.len() {
                let (found, lines) = cut(text, block, concatenated);
                let mut shown: Vec<_> = found.into_iter().map(|(start, text)| format!("{text}@{start}")).collect();
                shown.extend(lines.map(|offset| format!("...{offset}")));
                let shown = if shown.is_empty() { "-".to_owned() } else { shown.join(" ") };
                assert_eq!(shown, expected, "{text:?} in blocks of {block}");
            }
        }
    }

    #[test]
    fn brackets_deeper_than_any_row_are_counted() {
        let deep = format!("[{}{},1]", "[".repeat(300), "]".repeat(300));
        let (found, _) = cut(&deep, 7, false);
        assert_eq!(found.len(), 2);
    }
}
