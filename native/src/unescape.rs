//! JSON string literals to text (RFC 8259, section 7).

/// The text of a valid string literal, which includes its quotes; None if it has a lone surrogate.
pub fn unescape(literal: &str) -> Option<String> {
    let mut text = String::new();
    unescape_into(&literal[1..literal.len() - 1], &mut text).map(|()| text)
}

/// Appends the text of a valid string literal, given without its quotes; None if it has a lone surrogate.
pub fn unescape_into(mut rest: &str, text: &mut String) -> Option<()> {
    while let Some(backslash) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..backslash]);
        let escaped = &rest[backslash + 1..];
        let (character, length) = match escaped.as_bytes()[0] {
            b'b' => ('\u{8}', 1),
            b'f' => ('\u{c}', 1),
            b'n' => ('\n', 1),
            b'r' => ('\r', 1),
            b't' => ('\t', 1),
            b'u' => unescape_unicode(escaped)?,
            // A quotation mark, a backslash or a slash.
            character => (char::from(character), 1),
        };
        text.push(character);
        rest = &escaped[length..];
    }
    text.push_str(rest);
    Some(())
}

/// The character of `escaped`, which starts with `uXXXX`, and how many bytes of `escaped` it takes.
fn unescape_unicode(escaped: &str) -> Option<(char, usize)> {
    let high = parse_hex(escaped.get(1..5)?)?;
    if let Some(character) = char::from_u32(high) {
        return Some((character, 5));
    }
    let low = parse_hex(escaped.get(5..11)?.strip_prefix("\\u")?)?;
    if !(0xD800..0xDC00).contains(&high) || !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    Some((char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))?, 11))
}

fn parse_hex(digits: &str) -> Option<u32> {
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surrogate_pair_is_one_character() {
        assert_eq!(unescape(r#""\uD83D\uDE00\u0041\/""#).as_deref(), Some("\u{1F600}A/"));
        for lone in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#""\ud83dxxxxxx""#, r#""\ud83d\ud83d\ude00""#]
        {
            assert_eq!(unescape(lone), None, "{lone}");
        }
        assert_eq!(unescape(r#""\ud83d€€""#), None, "the six bytes after the escape end inside a character");
    }
}
