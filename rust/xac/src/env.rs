// SPDX-License-Identifier: MIT
//! Environments: opened, closed, and whose turn it is.

use std::cell::Cell;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytemuck::Pod;
use xac_sys as sys;

use crate::error::{Error, ErrorKind};
use crate::mapping::Mapping;

/// Which file it is, under whatever name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

/// A mapping that was dropped inside of a transaction, and is unmapped later.
struct Left {
    base: usize,
    file: FileId,
}

#[derive(Default)]
struct Files {
    mapped: Vec<FileId>,
    left: Vec<Left>,
}

/// What all handles of an environment share.
pub(crate) struct Inner {
    env: *mut sys::xac_env,
    /// The thread that has the turn, by an address of its own; 0: none.
    owner: AtomicUsize,
    turn: Mutex<()>,
    files: Mutex<Files>,
}

// SAFETY: the library's calls may come from any thread; transactions and changes of mappings take
// turns, and `files` is behind a lock.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

/// A number that no other thread has that lives.
fn this_thread() -> usize {
    thread_local!(static MARK: Cell<u8> = Cell::new(0));
    MARK.with(|mark| mark as *const _ as usize)
}

/// The thread is the only one that uses the environment's segments until this is dropped.
pub(crate) struct Turn<'a> {
    inner: &'a Inner,
    _guard: MutexGuard<'a, ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.inner.owner.store(0, Ordering::Relaxed);
    }
}

impl Inner {
    pub(crate) fn raw(&self) -> *mut sys::xac_env {
        self.env
    }

    /// Does the calling thread have the turn?  Nobody else stores its number.
    fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Wait for the turn.  A thread that has it is refused: its slices may be in use.
    pub(crate) fn take_turn(&self) -> Result<Turn<'_>, Error> {
        if self.is_mine() {
            return Err(Error::of_ours(
                ErrorKind::Nested,
                "the thread has a transaction or query of this environment open",
            ));
        }
        // A panic inside of a transaction has rolled it back: nothing is left half done.
        let guard = self
            .turn
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        self.owner.store(this_thread(), Ordering::Relaxed);
        Ok(Turn {
            inner: self,
            _guard: guard,
        })
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Unmap what was dropped inside of a transaction.
    fn unmap_left(&self, _turn: &Turn<'_>) {
        let mut files = self.files();
        for left in std::mem::take(&mut files.left) {
            self.unmap_now(&mut files, left);
        }
    }

    fn unmap_now(&self, files: &mut Files, left: Left) {
        // SAFETY: no slice refers to it, as its Mapping is gone; the turn is ours.
        let rc = unsafe { sys::xac_munmap_at_in(self.env, left.base as *mut _) };
        if rc == 0 {
            files.mapped.retain(|file| *file != left.file);
        } else {
            files.left.push(left); // it stays mapped, and known to be
        }
    }

    /// A Mapping is dropped: unmap it, or have it unmapped after the thread's transaction.
    pub(crate) fn unmap(&self, base: *mut u8, file: FileId) {
        let left = Left {
            base: base as usize,
            file,
        };
        match self.take_turn() {
            Ok(_turn) => self.unmap_now(&mut self.files(), left),
            Err(_) => self.files().left.push(left),
        }
    }

    /// Map the first `bytes` of a file that is not mapped yet.
    fn map(&self, path: &Path, bytes: usize) -> Result<(*mut u8, FileId), Error> {
        let turn = self.take_turn()?;
        let path = absolute(path)?;
        let name = c_string(&path)?;
        self.unmap_left(&turn);
        // SAFETY: a text that ends with 0; the pointer is checked.
        let base = unsafe { sys::xac_mmap_in(self.env, name.as_ptr().cast(), bytes) };
        if base as isize == -1 {
            return Err(Error::of_errno());
        }
        let unmap = || {
            // SAFETY: mapped just now, and nobody has got it.
            unsafe { sys::xac_munmap_at_in(self.env, base) };
        };
        let file = match std::fs::metadata(&path) {
            Ok(found) => FileId {
                device: found.dev(),
                inode: found.ino(),
            },
            Err(why) => {
                unmap();
                return Err(of_io(&path, &why));
            }
        };
        let mut files = self.files();
        if files.mapped.contains(&file) {
            unmap();
            return Err(Error::of_ours(
                ErrorKind::AlreadyMapped,
                &format!(
                    "{}: mapped already, perhaps under another name",
                    path.display()
                ),
            ));
        }
        files.mapped.push(file);
        Ok((base.cast(), file))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: open; all mappings and handles are gone.
        let rc = unsafe { sys::xac_close(self.env) };
        if rc != 0 && !std::thread::panicking() {
            eprintln!("xac: closing an environment: {}", Error::of_library(rc));
        }
    }
}

fn of_io(path: &Path, why: &std::io::Error) -> Error {
    Error::of_ours(ErrorKind::Other, &format!("{}: {why}", path.display()))
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::env::current_dir()
        .map(|here| here.join(path))
        .map_err(|why| of_io(path, &why))
}

fn c_string(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::of_ours(ErrorKind::Other, "a path with a zero byte"))
}

/// `count` elements, in whole pages.  An error if that is nothing, or too much.
pub(crate) fn whole_pages<T>(count: usize) -> Result<usize, Error> {
    // SAFETY: no arguments.
    let page = unsafe { sys::getpagesize() } as usize;
    if std::mem::align_of::<T>() > page {
        return Err(Error::of_ours(
            ErrorKind::Other,
            "elements that are aligned to more than a page",
        ));
    }
    count
        .checked_mul(std::mem::size_of::<T>())
        .and_then(|bytes| bytes.checked_add(page - 1))
        .map(|bytes| bytes / page * page)
        .filter(|bytes| *bytes > 0 && *bytes <= isize::MAX as usize)
        .ok_or_else(|| {
            Error::of_ours(
                ErrorKind::Other,
                "a mapping has at least one element, and fewer bytes than half of all addresses",
            )
        })
}

/// What happens when two transactions want the same page: see `doc/policies.md` of libxac.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// One writer at a time: nobody loses.  The default.
    Serial,
    /// They overlap, and the older one wins.
    OldestWins,
    /// They overlap, and are compared at their ends.
    Optimistic,
}

/// How much of the past is kept: see [`Options::history`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum History {
    /// The states of so many seconds.
    Seconds(u32),
    /// Those of so many commits.
    Commits(u32),
    /// So many bytes of versions of pages.
    Bytes(u64),
}

/// How closely the library watches accesses: see [`Options::checking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checking {
    /// Each transaction traps at its first access of each page.
    Strict,
    /// Pages stay readable from one transaction to the next.
    Fast,
    /// As `Fast`, and stores that were not announced do not count.
    Trusted,
}

/// How an environment is opened.
#[derive(Clone, Debug)]
pub struct Options {
    flags: i32,
    log_directory: Option<PathBuf>,
    values: Vec<(i32, u64)>,
    checking: Option<Checking>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Durable, with the library's defaults.
    pub fn new() -> Self {
        Options {
            flags: sys::XAC_DURABLE,
            log_directory: None,
            values: Vec::new(),
            checking: None,
        }
    }

    /// Shall commits survive a crash or power cut?  All processes must agree.
    pub fn durable(mut self, durable: bool) -> Self {
        self.flags = if durable {
            sys::XAC_DURABLE
        } else {
            sys::XAC_NONDURABLE
        };
        self
    }

    /// For queries only: nothing is written.
    pub fn read_only(mut self) -> Self {
        self.flags = sys::XAC_READONLY;
        self
    }

    /// Put the log into another directory, for example on a disk of its own.
    pub fn log_directory(mut self, path: impl AsRef<Path>) -> Self {
        self.log_directory = Some(path.as_ref().to_path_buf());
        self
    }

    /// See [`Policy`].
    pub fn policy(self, policy: Policy) -> Self {
        let value = match policy {
            Policy::Serial => sys::XAC_POLICY_SERIAL,
            Policy::OldestWins => sys::XAC_POLICY_OLDEST_WINS,
            Policy::Optimistic => sys::XAC_POLICY_OPTIMISTIC,
        };
        self.set(sys::XAC_OPT_POLICY, value as u64)
    }

    /// So long may a transaction wait for other processes.  0: there is no limit.
    pub fn wait_ms(self, ms: u64) -> Self {
        self.set(sys::XAC_OPT_WAIT_MS, ms)
    }

    /// So long may a commit stay unsynced; [`Env::sync`] waits.  0: it returns when it is on disk.
    pub fn sync_delay_ms(self, ms: u64) -> Self {
        self.set(sys::XAC_OPT_SYNC_DELAY_MS, ms)
    }

    /// So many bytes of log bring a checkpoint.
    pub fn checkpoint_bytes(self, bytes: u64) -> Self {
        self.set(sys::XAC_OPT_CHECKPOINT_BYTES, bytes)
    }

    /// Keep the states of a time, for [`Env::query_at`] and [`Env::diff`].
    pub fn history(self, window: History) -> Self {
        let value = match window {
            History::Seconds(n) => u64::from(n),
            History::Commits(n) => sys::XAC_HISTORY_COMMITS(u64::from(n)),
            History::Bytes(n) => sys::XAC_HISTORY_BYTES(n.min((1 << 62) - 1)),
        };
        self.set(sys::XAC_OPT_HISTORY, value)
    }

    /// Queries that hold back more bytes of page versions are cut off: they return an error with
    /// code `XAC_ECUTOFF`.  0: none is.
    pub fn reader_limit(self, bytes: u64) -> Self {
        self.set(sys::XAC_OPT_READER_LIMIT, bytes)
    }

    /// So much log is held back for a follower that lags behind; 0: an eighth of the disk of the log.
    pub fn log_keep_bytes(self, bytes: u64) -> Self {
        self.set(sys::XAC_OPT_LOG_KEEP_BYTES, bytes)
    }

    /// A node that leads a group and has no majority for so many milliseconds gives up the lead: calls
    /// return an error with code `XAC_EUNCERTAIN` or `XAC_ENOTLEADER`.
    pub fn group_wait_ms(self, milliseconds: u64) -> Self {
        self.set(sys::XAC_OPT_GROUP_WAIT_MS, milliseconds)
    }

    /// Watch accesses less closely, which is faster.  Without this call they are watched strictly,
    /// and a variable `XAC_CHECKING` that says otherwise is refused.
    ///
    /// # Safety
    ///
    /// * With [`Checking::Fast`] or [`Checking::Trusted`]: no thread touches a slice of a segment but
    ///   the one that runs the transaction.  An access by another one might not be noticed; it would
    ///   not be part of the transaction, or a store would be committed with another one.
    /// * With [`Checking::Trusted`]: every store goes to a range that [`Tx::prepare_mut`] has lent in
    ///   the same transaction.  Another store is neither committed nor rolled back, and shared
    ///   slices that are lent later may or may not show it.
    ///
    /// [`Tx::prepare_mut`]: crate::Tx::prepare_mut
    pub unsafe fn checking(mut self, checking: Checking) -> Self {
        self.checking = Some(checking);
        self
    }

    fn set(mut self, option: i32, value: u64) -> Self {
        self.values.push((option, value));
        self
    }

    /// Open the environment in directory `path`, which is made if it is missing.  After a crash
    /// it is recovered first.
    ///
    /// # Safety
    ///
    /// While the environment is open,
    ///
    /// * its mapped files, and the files in its directory, are changed by nothing but libxac: not
    ///   by `std::fs`, not by `mmap(2)`, not by a program that does not use libxac.  They are not
    ///   truncated, replaced or renamed either;
    /// * no other code of the process uses the same environment, for example through C, unless it
    ///   keeps the rules of this crate: no access to segments that this crate has mapped;
    /// * nobody changes the handlers of SIGSEGV and SIGBUS inside of a transaction, blocks these
    ///   signals, or leaves a transaction by `longjmp`.
    ///
    /// Otherwise the bytes behind a shared slice may change, which Rust takes to be impossible.
    pub unsafe fn open(&self, path: impl AsRef<Path>) -> Result<Env, Error> {
        let name = c_string(path.as_ref())?;
        let log = self.log_directory.as_deref().map(c_string).transpose()?;
        let mut options = std::mem::MaybeUninit::<sys::xac_options>::zeroed();
        let size = std::mem::size_of::<sys::xac_options>();
        // SAFETY: room for the structure, all of which is set.
        let mut options = unsafe {
            sys::xac_options_init(options.as_mut_ptr(), size);
            options.assume_init()
        };
        options.flags = self.flags;
        options.log_directory = log.as_ref().map_or(ptr::null(), |log| log.as_ptr().cast());
        for (option, value) in &self.values {
            options.value[*option as usize] = *value;
        }
        options.value[sys::XAC_OPT_CHECKING as usize] = self.checking_value()?;
        // SAFETY: texts that end with 0, and a structure that was filled in.
        let env = unsafe { sys::xac_open(name.as_ptr().cast(), &options) };
        if env.is_null() {
            return Err(Error::of_errno());
        }
        Ok(Env {
            inner: Arc::new(Inner {
                env,
                owner: AtomicUsize::new(0),
                turn: Mutex::new(()),
                files: Mutex::new(Files::default()),
            }),
        })
    }

    /// The variable counts more than the option: it may not weaken what safe code relies on.
    fn checking_value(&self) -> Result<u64, Error> {
        let variable = std::env::var_os("XAC_CHECKING").unwrap_or_default();
        if self.checking.is_none() && !variable.is_empty() && variable != "strict" {
            return Err(Error::of_ours(
                ErrorKind::Other,
                "the variable XAC_CHECKING asks for less than strict checking; safe Rust needs it \
                 (see Options::checking)",
            ));
        }
        Ok(match self.checking {
            None | Some(Checking::Strict) => sys::XAC_CHECKING_STRICT as u64,
            Some(Checking::Fast) => sys::XAC_CHECKING_FAST as u64,
            Some(Checking::Trusted) => sys::XAC_CHECKING_TRUSTED as u64,
        })
    }
}

/// An environment that is open.  Clones are the same environment; it is closed when the last of them
/// and of its mappings is dropped.
#[derive(Clone)]
pub struct Env {
    pub(crate) inner: Arc<Inner>,
}

impl Env {
    /// Open a durable environment.
    ///
    /// # Safety
    ///
    /// As [`Options::open`].
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Env, Error> {
        // SAFETY: the caller's promise.
        unsafe { Options::new().open(path) }
    }

    /// Map the first `count` elements of a file, which is made if it is missing and extended with
    /// zero bytes if it is shorter.
    ///
    /// A file can be mapped once: a second mapping would overlap the first one
    /// ([`ErrorKind::AlreadyMapped`]).  Not inside of a transaction of the same thread
    /// ([`ErrorKind::Nested`]).
    pub fn map<T: Pod>(&self, path: impl AsRef<Path>, count: usize) -> Result<Mapping<T>, Error> {
        let bytes = whole_pages::<T>(count)?;
        let (base, file) = self.inner.map(path.as_ref(), bytes)?;
        Ok(Mapping::new(Arc::clone(&self.inner), base, count, file))
    }

    /// Write what was committed to the mapped files, and sync them.
    pub fn checkpoint(&self) -> Result<(), Error> {
        let _turn = self.inner.take_turn()?;
        // SAFETY: open.
        check(unsafe { sys::xac_checkpoint_in(self.inner.env) })
    }

    /// Wait until all that this process has committed is on disk.
    pub fn sync(&self) -> Result<(), Error> {
        // SAFETY: open.
        check(unsafe { sys::xac_sync_in(self.inner.env) })
    }

    /// Remove a file that nobody maps, with all that was committed to it.  In a durable environment
    /// that is durable when it returns.
    ///
    /// `EBUSY` while it is mapped, by any process, while a query or snapshot needs an older state of it,
    /// or while a backup is made.  Not inside of a transaction of the same thread
    /// ([`ErrorKind::Nested`]).
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = c_string(path.as_ref())?;
        let _turn = self.inner.take_turn()?;
        // SAFETY: open; a string.
        check(unsafe { sys::xac_remove_in(self.inner.env, path.as_ptr().cast()) })
    }

    /// Rename a file that nobody maps, within its file system.  `to` replaces nothing.  Else as
    /// [`Env::remove`].
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), Error> {
        let (from, to) = (c_string(from.as_ref())?, c_string(to.as_ref())?);
        let _turn = self.inner.take_turn()?;
        // SAFETY: open; two strings.
        check(unsafe {
            sys::xac_rename_in(self.inner.env, from.as_ptr().cast(), to.as_ptr().cast())
        })
    }

    /// The environment for calls of C.  Using it needs `unsafe`, and must keep the rules of
    /// [`Options::open`].
    pub fn as_ptr(&self) -> *mut sys::xac_env {
        self.inner.env
    }
}

pub(crate) fn check(rc: i32) -> Result<(), Error> {
    if rc == 0 {
        Ok(())
    } else {
        Err(Error::of_library(rc))
    }
}
