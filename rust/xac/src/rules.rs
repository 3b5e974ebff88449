// SPDX-License-Identifier: MIT
//! What the types see to.  Each rule has a program that keeps it, and one that breaks it and does not
//! compile; both are tests.
//!
//! What types cannot see is looked at while the program runs, and tested in `tests/safe.rs`:
//!
//! * A thread that has a transaction or query of an environment open cannot begin another one in it
//!   ([`ErrorKind::Nested`](crate::ErrorKind::Nested)): slices of the outer one may be in use.
//! * A file is mapped once, under whatever name
//!   ([`ErrorKind::AlreadyMapped`](crate::ErrorKind::AlreadyMapped)).
//! * A mapping of another environment, and a mapping beside itself, panic.
//! * A variable `XAC_CHECKING` that asks for less than strict checking is refused.
//!
//! # A transaction stays in its thread
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.transact(|tx| {
//!     let part = tx.prepare_mut(&m, ..)?; // shown, so another thread may use it
//!     std::thread::scope(|s| {
//!         s.spawn(|| part[0] = 1);
//!     });
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0277
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.transact(|tx| {
//!     std::thread::scope(|s| {
//!         s.spawn(|| tx.slice_mut(&m)[0] = 1);
//!     });
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # So does a query
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.query(|q| {
//!     let part = q.prepare(&m, ..)?;
//!     std::thread::scope(|s| {
//!         s.spawn(|| assert_eq!(part[0], 0));
//!     });
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0277
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.query(|q| {
//!     std::thread::scope(|s| {
//!         s.spawn(|| assert_eq!(q.slice(&m)[0], 0));
//!     });
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # No slice outlives its transaction
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let first = env.transact(|tx| Ok::<_, Error>(tx.slice(&m)[0]))?;
//! assert_eq!(first, 0);
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let all = env.transact(|tx| Ok::<_, Error>(tx.slice(&m)))?;
//! assert_eq!(all[0], 0);
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Nor does it escape through what the function has captured
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let mut kept: Option<u64> = None;
//! env.transact(|tx| {
//!     kept = Some(tx.slice(&m)[0]);
//!     Ok::<_, Error>(())
//! })?;
//! assert_eq!(kept, Some(0));
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0521
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let mut kept: Option<&[u64]> = None;
//! env.transact(|tx| {
//!     kept = Some(tx.slice(&m));
//!     Ok::<_, Error>(())
//! })?;
//! assert_eq!(kept.unwrap()[0], 0);
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # No two exclusive slices of the same bytes
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.transact(|tx| {
//!     let (a, b) = tx.slice_mut(&m).split_at_mut(50);
//!     a[0] = 1;
//!     b[0] = 2;
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0499
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.transact(|tx| {
//!     let a = tx.slice_mut(&m);
//!     let b = tx.slice_mut(&m);
//!     a[0] = 1;
//!     b[0] = 2;
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # No shared slice beside an exclusive one
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.transact(|tx| {
//!     let first = tx.slice(&m)[0];
//!     tx.slice_mut(&m)[0] = 7;
//!     assert_eq!(first, 0);
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0502
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.transact(|tx| {
//!     let first = &tx.slice(&m)[0];
//!     tx.slice_mut(&m)[0] = 7;
//!     assert_eq!(*first, 0);
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # A query changes nothing
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.query(|q| {
//!     assert_eq!(q.slice(&m)[0], 0);
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0599
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.query(|q| {
//!     q.slice_mut(&m)[0] = 1;
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # A mapping does not end while a slice is lent
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! env.transact(|tx| {
//!     let sum: u64 = tx.slice(&m).iter().sum();
//!     assert_eq!(sum, 0);
//!     Ok::<_, Error>(())
//! })?;
//! let m: Mapping<u64> = { drop(m); env.map(dir.join("m.db"), 10)? };
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0505
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let mut m = Some(m);
//! env.transact(|tx| {
//!     let taken = m.take().unwrap();
//!     let all = tx.slice(&taken);
//!     drop(taken);
//!     assert_eq!(all[0], 0);
//!     Ok::<_, Error>(())
//! })?;
//! let m: Mapping<u64> = env.map(dir.join("m.db"), 10)?;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Nor does it move
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let mut o: Mapping<u64> = env.map(dir.join("o.db"), 10)?;
//! env.transact(|tx| Ok::<_, Error>(tx.slice_mut(&o)[9] = 1))?;
//! o.resize(100_000)?;
//! # drop((m, n, o, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0502
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let mut o: Mapping<u64> = env.map(dir.join("o.db"), 10)?;
//! env.transact(|tx| {
//!     let last = &mut tx.slice_mut(&o)[9];
//!     o.resize(100_000)?;
//!     *last = 1;
//!     Ok::<_, Error>(())
//! })?;
//! # drop((m, n, o, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Elements are plain bytes: no references
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let o: Mapping<[u8; 16]> = env.map(dir.join("o.db"), 10)?;
//! # drop((m, n, o, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0277
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let o: Mapping<&'static str> = env.map(dir.join("o.db"), 10)?;
//! # drop((m, n, o, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Any bytes are an element: no types that some bytes are not
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let o: Mapping<u8> = env.map(dir.join("o.db"), 10)?;
//! # drop((m, n, o, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0277
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let o: Mapping<bool> = env.map(dir.join("o.db"), 10)?;
//! # drop((m, n, o, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Shared elements do not change: no cells and no atomics
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let o: Mapping<u64> = env.map(dir.join("o.db"), 10)?;
//! # drop((m, n, o, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0277
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let o: Mapping<std::sync::atomic::AtomicU64> = env.map(dir.join("o.db"), 10)?;
//! # drop((m, n, o, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Transactions of two environments are not exchanged
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let other = unsafe { Env::open(dir.join("other"))? };
//! let o: Mapping<u64> = other.map(dir.join("o.db"), 10)?;
//! env.transact(|a| {
//!     other.transact(|b| {
//!         a.slice_mut(&m)[0] = 1;
//!         b.slice_mut(&o)[0] = 1;
//!         Ok::<_, Error>(())
//!     })
//! })?;
//! # drop((o, other));
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let other = unsafe { Env::open(dir.join("other"))? };
//! let o: Mapping<u64> = other.map(dir.join("o.db"), 10)?;
//! env.transact(|a| {
//!     other.transact(|b| {
//!         std::mem::swap(a, b);
//!         Ok::<_, Error>(())
//!     })
//! })?;
//! # drop((o, other));
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Opening is a promise
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! // SAFETY: nothing but libxac changes the files in this directory.
//! let other = unsafe { Env::open(dir.join("other"))? };
//! # drop(other);
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0133
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let other = Env::open(dir.join("other"))?;
//! # drop(other);
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Watching less closely is another
//!
//! ```
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! // SAFETY: no thread touches a slice but that of the transaction.
//! let options = unsafe { xac::Options::new().checking(xac::Checking::Fast) };
//! # let _ = options;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! ```compile_fail,E0133
//! # use xac::{Env, Error, Mapping};
//! # let dir = std::env::temp_dir().join(format!("xac-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let env = unsafe { Env::open(dir.join("db"))? };
//! # let m: Mapping<u64> = env.map(dir.join("m.db"), 100)?;
//! # let n: Mapping<u64> = env.map(dir.join("n.db"), 100)?;
//! let options = xac::Options::new().checking(xac::Checking::Fast);
//! # let _ = options;
//! # drop((m, n, env));
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), Error>(())
//! ```
