// SPDX-License-Identifier: MIT
//! Bindings to libxac, as far as the crate `xac` needs them: written by hand, and compared with the
//! headers of C by a test.  `xac.h` and `xac_env.h` are the manual.
#![no_std]
#![allow(non_camel_case_types, non_snake_case)]

use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};

// Those of core::ffi need Rust 1.64.
pub type c_int = i32;
pub type c_uint = u32;
pub type c_char = u8;

/// An environment that the process has open.
#[repr(C)]
pub struct xac_env {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

pub const XAC_OPTIONS: usize = 64;
pub const XAC_OPTION_UNSET: u64 = u64::MAX;

/// How an environment is opened.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct xac_options {
    pub size: usize,
    pub flags: c_int,
    pub reserved: c_int,
    pub log_directory: *const c_char,
    pub value: [u64; XAC_OPTIONS],
}

/// Bytes of a segment that differ between two states; all valid during the call.
pub const XAC_TOKEN_TEXT: usize = 64;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct xac_token {
    pub generation: u64,
    pub lsn: u64,
    pub branch: u64,
}

#[repr(C)]
pub struct xac_change {
    pub file: *const c_char,
    pub offset: u64,
    pub length: u64,
    pub before: *const c_void,
    pub after: *const c_void,
    pub address: *mut c_void,
}

pub const XAC_PARTY_COMMAND: usize = 16;

/// A row of the table of participants.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct xac_party {
    pub pid: u64,
    pub tid: u64,
    pub command: [c_char; XAC_PARTY_COMMAND],
    pub process: u64,
    pub is_reader: u64,
    pub engine: u64,
    pub kind: u64,
    pub age_ns: u64,
    pub commit: u64,
    pub pages_read: u64,
    pub pages_written: u64,
    pub versions_held: u64,
    pub log_held: u64,
    pub waits_for: u64,
    pub waits_pid: u64,
    pub waits_ns: u64,
    pub failed_kind: u64,
    pub failed_pid: u64,
    pub failed_ns: u64,
}

macro_rules! constants {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(pub const $name: $type = $value;)*
        /// All constants, for the test that compares them with those of C.
        pub const CONSTANTS: &[(&str, i64)] = &[$((stringify!($name), $name as i64)),*];
    };
}

constants! {
    XAC_NONDURABLE: c_int = 0;
    XAC_DURABLE: c_int = 1;
    XAC_READONLY: c_int = 2;
    XAC_COMMITTED: c_int = 0;
    XAC_ABORTED: c_int = 10001;
    XAC_PENDING: c_int = 10002;
    XAC_FAILED: c_int = 10003;
    XAC_SAME_ADDRESS: c_int = 1;
    XAC_MAY_MOVE: c_int = 2;
    XAC_READ: c_int = 1;
    XAC_READ_WRITE: c_int = 3;
    XAC_ENOINIT: c_int = -31001;
    XAC_EALREADY: c_int = -31002;
    XAC_ENOTXN: c_int = -31003;
    XAC_EINTXN: c_int = -31004;
    XAC_EINQUERY: c_int = -31005;
    XAC_ENOTMAPPED: c_int = -31006;
    XAC_EPOISONED: c_int = -31013;
    XAC_EREADONLY: c_int = -31023;
    XAC_ENOTDURABLE: c_int = -31027;
    XAC_EUNCERTAIN: c_int = -31028;
    XAC_ECUTOFF: c_int = -31032;
    XAC_ENOTLEADER: c_int = -31033;
    XAC_ELOST: c_int = -31034;
    XAC_OPT_CHECKPOINT_BYTES: c_int = 2;
    XAC_OPT_LOG_SEGMENT_BYTES: c_int = 3;
    XAC_OPT_POLICY: c_int = 6;
    XAC_OPT_SYNC_DELAY_MS: c_int = 7;
    XAC_OPT_WAIT_MS: c_int = 15;
    XAC_OPT_CHECKING: c_int = 16;
    XAC_OPT_HISTORY: c_int = 18;
    XAC_OPT_READER_LIMIT: c_int = 21;
    XAC_OPT_LOG_KEEP_BYTES: c_int = 22;
    XAC_OPT_GROUP_WAIT_MS: c_int = 23;
    XAC_CHECKING_STRICT: c_int = 0;
    XAC_CHECKING_FAST: c_int = 1;
    XAC_CHECKING_TRUSTED: c_int = 2;
    XAC_PARTY_IDLE: c_int = 0;
    XAC_PARTY_UPDATE: c_int = 1;
    XAC_PARTY_QUERY: c_int = 2;
    XAC_PARTY_FAILED: c_int = 3;
    XAC_PARTY_COMMITTING: c_int = 4;
    XAC_PARTY_CUT: c_int = 5;
    XAC_PARTY_SNAPSHOT: c_int = 6;
    XAC_POLICY_OLDEST_WINS: c_int = 0;
    XAC_POLICY_OPTIMISTIC: c_int = 4;
    XAC_POLICY_SERIAL: c_int = 5;
}

/// As the macros of the same names: states of the past, and windows of `XAC_OPT_HISTORY`.
pub const fn XAC_AT_COMMIT(number: u64) -> u64 {
    (1u64 << 62).wrapping_add(number)
}

pub const fn XAC_AT_TIME(ns: u64) -> u64 {
    (2u64 << 62).wrapping_add(ns)
}

pub const fn XAC_HISTORY_COMMITS(n: u64) -> u64 {
    (1u64 << 62).wrapping_add(n)
}

pub const fn XAC_HISTORY_BYTES(n: u64) -> u64 {
    (2u64 << 62).wrapping_add(n)
}

extern "C" {
    pub fn xac_version() -> *const c_char;
    pub fn xac_strerror(code: c_int) -> *const c_char;
    pub fn xac_last_error() -> *const c_char;
    pub fn xac_options_init(out: *mut xac_options, size: usize);
    pub fn xac_open(path: *const c_char, options: *const xac_options) -> *mut xac_env;
    pub fn xac_close(env: *mut xac_env) -> c_int;
    pub fn xac_mmap_in(env: *mut xac_env, name: *const c_char, length: usize) -> *mut c_void;
    pub fn xac_mmap_at_in(
        env: *mut xac_env,
        name: *const c_char,
        offset: u64,
        length: usize,
        flags: c_int,
    ) -> *mut c_void;
    pub fn xac_mremap_in(
        env: *mut xac_env,
        base: *mut c_void,
        length: usize,
        flags: c_int,
    ) -> *mut c_void;
    pub fn xac_munmap_at_in(env: *mut xac_env, base: *mut c_void) -> c_int;
    pub fn xac_begin_in(env: *mut xac_env) -> c_int;
    pub fn xac_end_in(env: *mut xac_env) -> c_int;
    pub fn xac_begin_query_in(env: *mut xac_env) -> c_int;
    pub fn xac_begin_query_at_in(env: *mut xac_env, id: u64) -> c_int;
    pub fn xac_begin_query_after_in(
        env: *mut xac_env,
        token: *const xac_token,
        wait_ms: u32,
    ) -> c_int;
    pub fn xac_begin_query_latest_in(env: *mut xac_env, wait_ms: u32) -> c_int;
    pub fn xac_end_query_in(env: *mut xac_env) -> c_int;
    pub fn xac_get_token_in(env: *mut xac_env, token: *mut xac_token) -> c_int;
    pub fn xac_fate_in(env: *mut xac_env, token: *const xac_token, wait_ms: u32) -> c_int;
    pub fn xac_token_format(token: *const xac_token, text: *mut c_char, size: usize) -> c_int;
    pub fn xac_token_parse(text: *const c_char, token: *mut xac_token) -> c_int;
    pub fn xac_snapshot_in(env: *mut xac_env, id: *mut u64) -> c_int;
    pub fn xac_snapshot_release_in(env: *mut xac_env, id: u64) -> c_int;
    pub fn xac_snapshot_keep_in(
        env: *mut xac_env,
        id: u64,
        name: *const c_char,
        seconds: u32,
    ) -> c_int;
    pub fn xac_participants_in(
        env: *mut xac_env,
        each: extern "C" fn(arg: *mut c_void, party: *const xac_party) -> c_int,
        arg: *mut c_void,
        size: usize,
    ) -> c_int;
    pub fn xac_snapshot_find_in(env: *mut xac_env, name: *const c_char, id: *mut u64) -> c_int;
    pub fn xac_savepoint_in(env: *mut xac_env) -> u64;
    pub fn xac_rollback_to_in(env: *mut xac_env, mark: u64) -> c_int;
    pub fn xac_release_in(env: *mut xac_env, mark: u64) -> c_int;
    pub fn xac_diff_in(
        env: *mut xac_env,
        from: u64,
        to: u64,
        f: extern "C" fn(arg: *mut c_void, change: *const xac_change) -> c_int,
        arg: *mut c_void,
    ) -> c_int;
    pub fn xac_abort_in(env: *mut xac_env) -> c_int;
    pub fn xac_set_range_access_in(
        env: *mut xac_env,
        addr: *mut c_void,
        length: usize,
        access: c_int,
    ) -> c_int;
    /// Of libc: bytes of a page.
    pub fn getpagesize() -> c_int;
    pub fn xac_checkpoint_in(env: *mut xac_env) -> c_int;
    pub fn xac_sync_in(env: *mut xac_env) -> c_int;
    pub fn xac_remove_in(env: *mut xac_env, name: *const c_char) -> c_int;
    pub fn xac_rename_in(env: *mut xac_env, from: *const c_char, to: *const c_char) -> c_int;
}
