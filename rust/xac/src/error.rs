// SPDX-License-Identifier: MIT
//! What can go wrong, with the library's words.

use std::ffi::CStr;
use std::fmt;

use xac_sys as sys;

/// What kind of failure it is, as far as a program may want to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The calling thread has a transaction or query of this environment open.
    Nested,
    /// The attempts are used up: others changed what the transaction used.
    Conflict,
    /// The file is mapped already, perhaps under another name.
    AlreadyMapped,
    /// Committed, do not repeat it; but it is not known to be on disk yet.
    NotDurable,
    /// Not known yet whether it stays: ask [`crate::Env::fate`] before it is repeated.
    Uncertain,
    /// All else: see [`Error::code`].
    Other,
}

/// A failure: a code of the library, and its words.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    code: i32,
    message: String,
}

impl Error {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// An errno value, a negative `XAC_E...` code of `xac_codes.h`, or 0 for failures that the
    /// library does not know.
    pub fn code(&self) -> i32 {
        self.code
    }

    pub(crate) fn of_ours(kind: ErrorKind, message: &str) -> Self {
        Error {
            kind,
            code: 0,
            message: message.to_string(),
        }
    }

    /// The latest failure of this thread, which returned `code`.
    pub(crate) fn of_library(code: i32) -> Self {
        // SAFETY: the text is the thread's, and copied before its next call.
        let words = unsafe { CStr::from_ptr(sys::xac_last_error().cast()) };
        // SAFETY: static text.
        let meaning = unsafe { CStr::from_ptr(sys::xac_strerror(code).cast()) };
        let text = if words.to_bytes().is_empty() {
            meaning
        } else {
            words
        };
        Error {
            kind: match code {
                sys::XAC_ABORTED => ErrorKind::Conflict,
                sys::XAC_ENOTDURABLE => ErrorKind::NotDurable,
                sys::XAC_EUNCERTAIN => ErrorKind::Uncertain,
                _ => ErrorKind::Other,
            },
            code,
            message: text.to_string_lossy().into_owned(),
        }
    }

    /// After a call that returns a pointer and leaves its code in errno.
    pub(crate) fn of_errno() -> Self {
        let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Error::of_library(code)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncertain_is_not_called_committed() {
        assert_eq!(
            Error::of_library(sys::XAC_EUNCERTAIN).kind(),
            ErrorKind::Uncertain
        );
        assert_eq!(
            Error::of_library(sys::XAC_ENOTDURABLE).kind(),
            ErrorKind::NotDurable
        );
    }
}
