// SPDX-License-Identifier: MIT
//! The table of participants: what each thread that takes part does, and what it holds back.

use std::ffi::c_void;
use std::time::Duration;

use xac_sys as sys;

use crate::env::{check, Env};
use crate::error::Error;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// No transaction is open.
    Idle,
    /// A transaction.
    Update,
    /// A query.
    Query,
    /// A transaction that has failed, and goes on until its end.
    Failed,
    /// A transaction at its end.
    Committing,
    /// A query that has been cut off: `Options::reader_limit`.
    CutOff,
    /// No thread: a snapshot that the process has taken.
    Snapshot,
    /// What a newer library has told.
    Unknown,
}

/// A row of the table: a thread of a process, or its snapshot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Participant {
    /// The process.
    pub pid: u64,
    /// The thread that has begun the last transaction; 0: none has.
    pub tid: u64,
    /// Name of the process; empty if it is not known.
    pub command: String,
    /// What it does.
    pub activity: Activity,
    /// Since when, within 10 ms.
    pub age: Duration,
    /// Number of the last commit that it sees.
    pub commit: u64,
    /// Pages that it has read and not written, as far as that is noticed.
    pub pages_read: u64,
    /// Pages that it has written.
    pub pages_written: u64,
    /// Page versions that it holds back.
    pub versions_held: u64,
    /// Bytes of log that it holds back, at the least.
    pub log_held: u64,
    /// What it waits for, if it does: the process, 0 if that is not known, and since when.
    pub waits_for: Option<(u64, Duration)>,
    /// Who made its last transaction that failed fail: the process, 0 if that is not known, and how
    /// long ago.
    pub failed_by: Option<(u64, Duration)>,
}

fn activity_of(kind: u64) -> Activity {
    match i32::try_from(kind) {
        Ok(sys::XAC_PARTY_IDLE) => Activity::Idle,
        Ok(sys::XAC_PARTY_UPDATE) => Activity::Update,
        Ok(sys::XAC_PARTY_QUERY) => Activity::Query,
        Ok(sys::XAC_PARTY_FAILED) => Activity::Failed,
        Ok(sys::XAC_PARTY_COMMITTING) => Activity::Committing,
        Ok(sys::XAC_PARTY_CUT) => Activity::CutOff,
        Ok(sys::XAC_PARTY_SNAPSHOT) => Activity::Snapshot,
        _ => Activity::Unknown,
    }
}

impl Participant {
    fn of(row: &sys::xac_party) -> Self {
        let command: Vec<u8> = row
            .command
            .iter()
            .copied()
            .take_while(|c| *c != 0)
            .collect();
        let after = |is: u64, pid, ns| (is != 0).then(|| (pid, Duration::from_nanos(ns)));
        Participant {
            pid: row.pid,
            tid: row.tid,
            command: String::from_utf8_lossy(&command).into_owned(),
            activity: activity_of(row.kind),
            age: Duration::from_nanos(row.age_ns),
            commit: row.commit,
            pages_read: row.pages_read,
            pages_written: row.pages_written,
            versions_held: row.versions_held,
            log_held: row.log_held,
            waits_for: after(row.waits_for, row.waits_pid, row.waits_ns),
            failed_by: after(row.failed_kind, row.failed_pid, row.failed_ns),
        }
    }
}

/// Keep a row: the library calls it for each.
extern "C" fn keep(arg: *mut c_void, row: *const sys::xac_party) -> sys::c_int {
    // SAFETY: `arg` is the vector of Env::participants(), which nobody else uses meanwhile; the row is
    // valid during the call.
    let (rows, row) = unsafe { (&mut *arg.cast::<Vec<sys::xac_party>>(), *row) };
    rows.push(row);
    0
}

impl Env {
    /// What each thread that takes part does, what it holds back, and what it waits for.  It disturbs
    /// nobody, and takes a moment: what one row shows may be over when the next one is made.
    pub fn participants(&self) -> Result<Vec<Participant>, Error> {
        let mut rows: Vec<sys::xac_party> = Vec::new();
        let arg: *mut Vec<sys::xac_party> = &mut rows;
        // SAFETY: open; the size is that of the rows that `keep` takes.
        check(unsafe {
            sys::xac_participants_in(
                self.inner.raw(),
                keep,
                arg.cast(),
                std::mem::size_of::<sys::xac_party>(),
            )
        })?;
        Ok(rows.iter().map(Participant::of).collect())
    }
}
