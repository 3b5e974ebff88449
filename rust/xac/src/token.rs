// SPDX-License-Identifier: MIT
//! Tokens: what has been committed or seen at one node, for queries at another one.

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::str::FromStr;
use std::time::Duration;

use xac_sys as sys;

use crate::env::{check, Env};
use crate::error::{Error, ErrorKind};
use crate::tx::Query;

/// A name of a state of the log: everything up to the end of a commit.
///
/// It goes to other machines as text ([`Display`](fmt::Display), [`FromStr`]).  The default is the
/// token of nothing: each state has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Token(pub(crate) sys::xac_token);

/// What has become of the state of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays, in a group on a majority of the nodes.
    Committed,
    /// It is not a part of the log, and will never be.
    Lost,
    /// It is not known here, or not yet.
    Uncertain,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0 as c_char; sys::XAC_TOKEN_TEXT];
        // SAFETY: it has so many bytes, and a NUL behind the text.
        let text = unsafe {
            if sys::xac_token_format(&self.0, text.as_mut_ptr().cast(), text.len()) != 0 {
                return Err(fmt::Error);
            }
            CStr::from_ptr(text.as_ptr())
        };
        f.write_str(&text.to_string_lossy())
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text =
            CString::new(text).map_err(|_| Error::of_ours(ErrorKind::Other, "a NUL in a token"))?;
        let mut token = Token::default();
        // SAFETY: a text that ends.
        check(unsafe { sys::xac_token_parse(text.as_ptr().cast(), &mut token.0) })?;
        Ok(token)
    }
}

/// What the library takes: milliseconds, as many as there may be.
fn wait_ms(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis()).unwrap_or(u32::MAX)
}

impl Env {
    /// The token of what this thread has ended last: of its commit, or of what it has seen.
    pub fn token(&self) -> Result<Token, Error> {
        let mut token = Token::default();
        // SAFETY: open.
        check(unsafe { sys::xac_get_token_in(self.inner.raw(), &mut token.0) })?;
        Ok(token)
    }

    /// What has become of a token, asked at any node; for an answer it waits so long.
    pub fn fate(&self, token: &Token, wait: Duration) -> Result<Fate, Error> {
        // SAFETY: open.
        match unsafe { sys::xac_fate_in(self.inner.raw(), &token.0, wait_ms(wait)) } {
            sys::XAC_ELOST => Ok(Fate::Lost),
            sys::XAC_EUNCERTAIN => Ok(Fate::Uncertain),
            rc => check(rc).map(|()| Fate::Committed),
        }
    }

    /// As [`Env::query`], with at least the state of a token, for which it waits so long: the error has the code
    /// `ETIMEDOUT` or `XAC_ELOST`.  Other threads of the process wait for their turn meanwhile.
    pub fn query_after<R, E: From<Error>>(
        &self,
        token: &Token,
        wait: Duration,
        f: impl FnOnce(&Query<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.query_from(
            // SAFETY: open, and the turn is ours.
            |env| unsafe { sys::xac_begin_query_after_in(env, &token.0, wait_ms(wait)) },
            f,
        )
    }

    /// As [`Env::query`], with all that was acknowledged before at any node of the group: linearizable.
    pub fn query_latest<R, E: From<Error>>(
        &self,
        wait: Duration,
        f: impl FnOnce(&Query<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.query_from(
            // SAFETY: as above.
            |env| unsafe { sys::xac_begin_query_latest_in(env, wait_ms(wait)) },
            f,
        )
    }
}
