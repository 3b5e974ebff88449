// SPDX-License-Identifier: MIT
//! Transactions and queries: they lend slices of mapped files.

use std::ffi::{CStr, CString, OsStr};
use std::marker::PhantomData;
use std::ops::{Bound, Deref, RangeBounds};
use std::os::raw::c_int;
use std::os::unix::ffi::OsStrExt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytemuck::Pod;
use xac_sys as sys;

use crate::env::{check, Env, Inner};
use crate::error::{Error, ErrorKind};
use crate::mapping::Mapping;

/// A query, or the reading half of a transaction: lends shared slices, on one snapshot.
///
/// It stays in its thread, and exists only for the function that [`Env::query`] or
/// [`Env::transact`] calls.
pub struct Query<'e> {
    inner: &'e Inner,
    /// Neither Send nor Sync, and invariant: two of them cannot be swapped.
    _stays: PhantomData<(*mut (), fn(&'e ()) -> &'e ())>,
}

impl<'e> Query<'e> {
    fn new(inner: &'e Inner) -> Self {
        Query {
            inner,
            _stays: PhantomData,
        }
    }

    /// All elements of a mapping.
    ///
    /// # Panics
    ///
    /// If the mapping belongs to another environment.
    pub fn slice<'a, T: Pod>(&'a self, mapping: &'a Mapping<T>) -> &'a [T] {
        let base = mapping.base_in(self.inner);
        // SAFETY: mapped, aligned to a page, any bytes are a T; the thread's transaction is open as
        // long as `self` is borrowed, and no exclusive slice is lent meanwhile.
        unsafe { slice::from_raw_parts(base, mapping.len()) }
    }

    /// Some elements, shown now: they may be given to system calls, and to other threads that end
    /// before the borrow does.
    ///
    /// # Panics
    ///
    /// If the mapping belongs to another environment, or the range is out of bounds.
    pub fn prepare<'a, T: Pod>(
        &'a self,
        mapping: &'a Mapping<T>,
        range: impl RangeBounds<usize>,
    ) -> Result<&'a [T], Error> {
        let (from, to) = bounds(range, mapping.len());
        let part = &self.slice(mapping)[from..to];
        announce(self.inner, part.as_ptr(), part.len(), sys::XAC_READ)?;
        Ok(part)
    }
}

/// A transaction: lends exclusive slices, and is a [`Query`] besides.
///
/// Each slice borrows it, so that no two exclusive slices, nor an exclusive and a shared one, are
/// lent at the same time.
pub struct Tx<'e> {
    query: Query<'e>,
}

impl<'e> Deref for Tx<'e> {
    type Target = Query<'e>;

    fn deref(&self) -> &Query<'e> {
        &self.query
    }
}

impl<'e> Tx<'e> {
    /// All elements of a mapping, to be changed.
    ///
    /// # Panics
    ///
    /// If the mapping belongs to another environment.
    pub fn slice_mut<'a, T: Pod>(&'a mut self, mapping: &'a Mapping<T>) -> &'a mut [T] {
        let base = mapping.base_in(self.query.inner);
        // SAFETY: as Query::slice(); `self` is borrowed exclusively, and no two mappings overlap.
        unsafe { slice::from_raw_parts_mut(base, mapping.len()) }
    }

    /// All elements of two mappings.
    ///
    /// # Panics
    ///
    /// If they are the same one, or belong to another environment.
    pub fn pair_mut<'a, A: Pod, B: Pod>(
        &'a mut self,
        a: &'a Mapping<A>,
        b: &'a Mapping<B>,
    ) -> (&'a mut [A], &'a mut [B]) {
        let (at, bt) = (a.base_in(self.query.inner), b.base_in(self.query.inner));
        assert!(
            at as usize != bt as usize,
            "the two mappings are the same one"
        );
        // SAFETY: as slice_mut(); different mappings do not overlap.
        unsafe {
            (
                slice::from_raw_parts_mut(at, a.len()),
                slice::from_raw_parts_mut(bt, b.len()),
            )
        }
    }

    /// Some elements, announced for writing: they may be given to system calls, and to other
    /// threads that end before the borrow does.
    ///
    /// # Panics
    ///
    /// If the mapping belongs to another environment, or the range is out of bounds.
    pub fn prepare_mut<'a, T: Pod>(
        &'a mut self,
        mapping: &'a Mapping<T>,
        range: impl RangeBounds<usize>,
    ) -> Result<&'a mut [T], Error> {
        let inner = self.query.inner;
        let (from, to) = bounds(range, mapping.len());
        let part = &mut self.slice_mut(mapping)[from..to];
        announce(inner, part.as_ptr(), part.len(), sys::XAC_READ_WRITE)?;
        Ok(part)
    }
}

impl Tx<'_> {
    /// Run a function as a part of the transaction, behind a savepoint.
    ///
    /// `Ok` keeps what it has stored; `Err` undoes that, and so does a panic, which goes on then.  Either
    /// way the transaction goes on, and decides what is committed.  Parts may be nested.
    pub fn part<R, E: From<Error>>(
        &mut self,
        f: impl FnOnce(&mut Tx<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let env = self.query.inner.raw();
        // SAFETY: the thread's transaction is open, and no slice is lent: `self` is borrowed exclusively.
        let mark = unsafe { sys::xac_savepoint_in(env) };
        if mark == 0 {
            return Err(Error::of_errno().into());
        }
        let mut inner = Tx {
            query: Query::new(self.query.inner),
        };
        let result = catch_unwind(AssertUnwindSafe(|| f(&mut inner)));
        let mut undone = Ok(());
        if !matches!(result, Ok(Ok(_))) {
            // SAFETY: as above.  The mark is there: parts end in the order of a stack.
            undone = match unsafe { sys::xac_rollback_to_in(env, mark) } {
                sys::XAC_FAILED => Ok(()), // done, and the transaction will be tried again
                rc => check(rc),
            };
        }
        // SAFETY: as above.
        unsafe { sys::xac_release_in(env, mark) };
        match result {
            Err(panic) => resume_unwind(panic),
            // What could not be undone is not committed either: the end of the transaction fails.
            Ok(Err(why)) => Err(undone.map_or_else(E::from, |()| why)),
            Ok(Ok(value)) => Ok(value),
        }
    }
}

fn bounds(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let from = match range.start_bound() {
        Bound::Included(at) => *at,
        Bound::Excluded(at) => at.checked_add(1).expect("range out of bounds"),
        Bound::Unbounded => 0,
    };
    let to = match range.end_bound() {
        Bound::Included(at) => at.checked_add(1).expect("range out of bounds"),
        Bound::Excluded(at) => *at,
        Bound::Unbounded => len,
    };
    (from, to)
}

fn announce<T>(inner: &Inner, at: *const T, len: usize, access: i32) -> Result<(), Error> {
    if len == 0 {
        return Ok(());
    }
    let bytes = len * std::mem::size_of::<T>();
    // SAFETY: a range of a segment that is mapped; only pages are shown.
    check(unsafe { sys::xac_set_range_access_in(inner.raw(), at as *mut _, bytes, access) })
}

/// How an attempt ended.
enum Attempt<R, E> {
    Done(Result<R, E>),
    Again,
}

impl Env {
    /// Run a function as a transaction, and again as long as others make it abort.
    ///
    /// `Ok` commits; in a durable environment it is on disk when this returns.  `Err` rolls back, and
    /// so does a panic, which goes on then.  Only the segments are rolled back: what the function
    /// has captured keeps what an attempt stored in it.
    ///
    /// The threads of a process take turns.  A thread that has a transaction or query of this
    /// environment open gets [`ErrorKind::Nested`](crate::ErrorKind::Nested): the slices of the outer
    /// one may be in use.
    pub fn transact<R, E: From<Error>>(
        &self,
        f: impl FnMut(&mut Tx<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.transact_at_most(u64::MAX, f)
    }

    /// The same, with so many attempts; then [`ErrorKind::Conflict`](crate::ErrorKind::Conflict).
    pub fn transact_at_most<R, E: From<Error>>(
        &self,
        attempts: u64,
        mut f: impl FnMut(&mut Tx<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let _turn = self.inner.take_turn()?;
        for _ in 0..attempts {
            if let Attempt::Done(result) = self.attempt(&mut f) {
                return result;
            }
        }
        Err(Error::of_library(sys::XAC_ABORTED).into())
    }

    fn attempt<R, E: From<Error>>(
        &self,
        f: &mut impl FnMut(&mut Tx<'_>) -> Result<R, E>,
    ) -> Attempt<R, E> {
        let env = self.inner.raw();
        // SAFETY: open, and the turn is ours.
        if let Err(why) = check(unsafe { sys::xac_begin_in(env) }) {
            return Attempt::Done(Err(why.into()));
        }
        let mut tx = Tx {
            query: Query::new(&self.inner),
        };
        let result = catch_unwind(AssertUnwindSafe(|| f(&mut tx)));
        if !matches!(result, Ok(Ok(_))) {
            // SAFETY: as above.  It has begun, so this cannot fail but in a child by fork().
            unsafe { sys::xac_abort_in(env) };
        }
        // SAFETY: as above; all slices are gone.
        let rc = unsafe { sys::xac_end_in(env) };
        match result {
            Err(panic) => resume_unwind(panic),
            Ok(Err(why)) => Attempt::Done(Err(why)),
            Ok(Ok(_)) if rc == sys::XAC_ABORTED => Attempt::Again,
            Ok(Ok(value)) => Attempt::Done(check(rc).map(|()| value).map_err(E::from)),
        }
    }

    /// Run a function as a query, on the snapshot of this moment.  It never conflicts, and sees no
    /// part of a transaction.
    ///
    /// A thread that has a transaction or query of this environment open gets
    /// [`ErrorKind::Nested`](crate::ErrorKind::Nested); inside of a transaction use that itself.
    pub fn query<R, E: From<Error>>(
        &self,
        f: impl FnOnce(&Query<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let _turn = self.inner.take_turn()?;
        // SAFETY: open, and the turn is ours.
        check(unsafe { sys::xac_begin_query_in(self.inner.raw()) })?;
        self.finish_query(f)
    }

    /// As [`Env::query`], at a snapshot of any process, by its number; or at a state of the past:
    /// [`at_commit`], [`at_time`].
    pub fn query_at<R, E: From<Error>>(
        &self,
        snapshot: u64,
        f: impl FnOnce(&Query<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let _turn = self.inner.take_turn()?;
        // SAFETY: as above.
        check(unsafe { sys::xac_begin_query_at_in(self.inner.raw(), snapshot) })?;
        self.finish_query(f)
    }

    /// A query that begins as it is told; the turn is ours then.
    pub(crate) fn query_from<R, E: From<Error>>(
        &self,
        begin: impl FnOnce(*mut sys::xac_env) -> c_int,
        f: impl FnOnce(&Query<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let _turn = self.inner.take_turn()?;
        check(begin(self.inner.raw()))?;
        self.finish_query(f)
    }

    /// The rest of a query that has begun; the turn is ours.
    fn finish_query<R, E: From<Error>>(
        &self,
        f: impl FnOnce(&Query<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let env = self.inner.raw();
        let query = Query::new(&self.inner);
        let result = catch_unwind(AssertUnwindSafe(|| f(&query)));
        // SAFETY: as above; all slices are gone.
        let rc = unsafe { sys::xac_end_query_in(env) };
        match result {
            Err(panic) => resume_unwind(panic),
            Ok(Err(why)) => Err(why),
            Ok(Ok(value)) => check(rc).map(|()| value).map_err(E::from),
        }
    }

    /// Tell what differs between two states (snapshots, [`at_commit`], [`at_time`]), in the files that
    /// are mapped here.  The function returns `false` to stop.
    pub fn diff(
        &self,
        from: u64,
        to: u64,
        f: impl FnMut(&Change<'_>) -> bool,
    ) -> Result<(), Error> {
        let _turn = self.inner.take_turn()?;
        let mut walk = Walk {
            f,
            is_over: false,
            panic: None,
        };
        // SAFETY: open, and the turn is ours; `walk` is of the type that the function expects.
        let rc = unsafe { walk.run(self.inner.raw(), from, to) };
        match walk.panic {
            Some(panic) => resume_unwind(panic),
            None if walk.is_over => Ok(()),
            None => check(rc),
        }
    }

    /// Hold the present state, so that queries of all processes and threads can see it, until the
    /// value is dropped.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let _turn = self.inner.take_turn()?;
        let mut id = 0;
        // SAFETY: open, and the turn is ours.
        check(unsafe { sys::xac_snapshot_in(self.inner.raw(), &mut id) })?;
        Ok(Snapshot {
            inner: Arc::clone(&self.inner),
            id,
            is_held: true,
        })
    }

    /// The number of the snapshot that [`Snapshot::keep`] has given a name, in any process.
    pub fn find_snapshot(&self, name: &str) -> Result<u64, Error> {
        let name = named(name)?;
        let mut id = 0;
        // SAFETY: open; a text that ends with 0.
        check(unsafe {
            sys::xac_snapshot_find_in(self.inner.raw(), name.as_ptr().cast(), &mut id)
        })?;
        Ok(id)
    }

    /// Release a snapshot of any process.
    pub fn release_snapshot(&self, id: u64) -> Result<(), Error> {
        // SAFETY: open.
        check(unsafe { sys::xac_snapshot_release_in(self.inner.raw(), id) })
    }
}

/// The state after a commit, by its number; 0: the first state that the history has.
pub fn at_commit(number: u64) -> u64 {
    sys::XAC_AT_COMMIT(number)
}

/// The state that was present at a time, as far as the option [`Options::history`] reaches.
///
/// [`Options::history`]: crate::Options::history
pub fn at_time(when: SystemTime) -> u64 {
    let since = when.duration_since(UNIX_EPOCH).unwrap_or_default();
    sys::XAC_AT_TIME(since.as_nanos() as u64)
}

/// A range of a file that differs between two states.
pub struct Change<'a> {
    /// As it is mapped.
    pub file: &'a Path,
    /// Bytes, of the first one within the file.
    pub offset: u64,
    /// Its bytes in the first state.
    pub before: &'a [u8],
    /// Its bytes in the second state.
    pub after: &'a [u8],
}

/// A walk over changes: its function, and how it has ended.
struct Walk<F> {
    f: F,
    is_over: bool,
    panic: Option<Box<dyn std::any::Any + Send>>,
}

impl<F: FnMut(&Change<'_>) -> bool> Walk<F> {
    unsafe fn run(&mut self, env: *mut sys::xac_env, from: u64, to: u64) -> i32 {
        let arg: *mut Self = self;
        // SAFETY: the caller's; once() gets back what it expects.
        unsafe { sys::xac_diff_in(env, from, to, Self::once, arg.cast()) }
    }

    extern "C" fn once(arg: *mut std::ffi::c_void, change: *const sys::xac_change) -> i32 {
        // SAFETY: what run() has given, and a change that is valid during the call.
        let (walk, c) = unsafe { (&mut *arg.cast::<Self>(), &*change) };
        // SAFETY: as above.
        let change = unsafe {
            let length = c.length as usize;
            let file = CStr::from_ptr(c.file.cast()).to_bytes();
            Change {
                file: Path::new(OsStr::from_bytes(file)),
                offset: c.offset,
                before: slice::from_raw_parts(c.before.cast(), length),
                after: slice::from_raw_parts(c.after.cast(), length),
            }
        };
        match catch_unwind(AssertUnwindSafe(|| (walk.f)(&change))) {
            Ok(go_on) => walk.is_over = !go_on,
            Err(panic) => walk.panic = Some(panic),
        }
        i32::from(walk.is_over || walk.panic.is_some())
    }
}

fn named(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| Error::of_ours(ErrorKind::Other, "a name with a zero byte"))
}

/// A state that is held until this is dropped.
pub struct Snapshot {
    inner: Arc<Inner>,
    id: u64,
    is_held: bool,
}

impl Snapshot {
    /// What [`Env::query_at`] takes, in this process and in others.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Have it outlive this value and the process: it gets a name, and so many seconds to live.
    pub fn keep(mut self, name: &str, seconds: u32) -> Result<u64, Error> {
        let name = named(name)?;
        // SAFETY: open; a text that ends with 0.
        check(unsafe {
            sys::xac_snapshot_keep_in(self.inner.raw(), self.id, name.as_ptr().cast(), seconds)
        })?;
        self.is_held = false;
        Ok(self.id)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if self.is_held {
            // SAFETY: open, for `inner` is.
            unsafe { sys::xac_snapshot_release_in(self.inner.raw(), self.id) };
        }
    }
}
