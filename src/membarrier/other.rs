//! Systems without the call: never available, so nobody relies on it.

pub(crate) fn register() -> bool {
    false
}

pub(crate) fn issue() -> bool {
    false
}
