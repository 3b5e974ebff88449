// SPDX-License-Identifier: MIT
//! Transactions on memory-mapped files.
//!
//! A program maps a file and gets slices of it.  Its plain loads and stores in a transaction are
//! serializable, across processes, durable if asked for, and recovered after a crash.
//!
//! ```
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! use xac::{Env, Mapping};
//!
//! // SAFETY: nothing but libxac changes the files in this directory.
//! let env = unsafe { Env::open(dir.join("db"))? };
//! let counters: Mapping<u64> = env.map(dir.join("counters.db"), 1000)?;
//!
//! let first = env.transact(|tx| {
//!     let c = tx.slice_mut(&counters);
//!     c[0] += 1;
//!     c[1] -= c[1].min(1);
//!     Ok::<_, xac::Error>(c[0])
//! })?;
//! assert_eq!(first, 1);
//!
//! let sum = env.query(|q| Ok::<_, xac::Error>(q.slice(&counters).iter().sum::<u64>()))?;
//! assert_eq!(sum, 1);
//! # drop((counters, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), xac::Error>(())
//! ```
//!
//! # What is unsafe
//!
//! [`Env::open`] and [`Options::open`], since the type system cannot know who else changes the files;
//! [`Options::checking`], since less than strict checking relies on promises.  Their rules are
//! written there.  All else is safe: [`rules`] lists what the types see to, each with a program that
//! does not compile.
//!
//! # What a program must know
//!
//! * Only segments are rolled back.  What the function has captured keeps what an attempt
//!   stored in it.
//! * A system call does not show pages: `read(2)` into a slice fails with `EFAULT` unless
//!   [`Tx::prepare_mut`] has lent it.  The same for another thread that a slice is given to: if it
//!   is the first to touch a page, the process is stopped.
//! * A page that cannot be shown, for want of room for example, stops the process.
//! * Elements are [`bytemuck::Pod`]: any bytes are a value.  So no bytes in a file can break a program's
//!   types; but that they mean something is the program's concern.

#![warn(missing_docs)]
#![warn(unsafe_op_in_unsafe_fn)]

mod env;
mod error;
mod mapping;
mod participants;
pub mod rules;
mod token;
mod tx;

pub use bytemuck;
pub use env::{Checking, Env, History, Options, Policy};
pub use error::{Error, ErrorKind};
pub use mapping::Mapping;
pub use participants::{Activity, Participant};
pub use token::{Fate, Token};
pub use tx::{at_commit, at_time, Change, Query, Snapshot, Tx};

/// The program of the document compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../doc/rust.md")]
pub struct Document;
