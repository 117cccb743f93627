//! Numbers that the JSON parser refuses, made small: JSON knows no largest number, and here all of them are ignored.

/// The text with every number outside of strings cut to a few digits and its exponent to 0: numbers stay numbers, and what
/// is none stays none.
pub(super) fn tame_numbers(text: &str) -> String {
    let mut tame = String::with_capacity(text.len());
    let (mut in_string, mut escaped, mut digits, mut exponent) = (false, false, 0, false);
    for character in text.chars() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if character.is_ascii_digit() {
            digits += 1;
            if digits > if exponent { 1 } else { 15 } {
                continue;
            }
            if exponent {
                tame.push('0');
                continue;
            }
        } else {
            exponent = matches!(character, 'e' | 'E') && digits > 0
                || exponent && digits == 0 && matches!(character, '+' | '-');
            digits = 0;
            in_string = character == '"';
        }
        tame.push(character);
    }
    tame
}
