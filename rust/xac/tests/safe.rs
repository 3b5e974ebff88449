// SPDX-License-Identifier: MIT
//! The safe interface does what it says, and refuses what types cannot see.

#![allow(clippy::unit_arg)]

mod common;

use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::{catch_unwind, AssertUnwindSafe};

use common::{child, child_dir, open, Dir};
use xac::{
    at_commit, at_time, Activity, Checking, Error, ErrorKind, Fate, History, Mapping, Options,
    Policy, Token,
};

#[test]
fn commits_are_there_when_opened_again() {
    let dir = Dir::new();
    for run in 0..3u64 {
        let env = open(&dir.path(""), &Options::new());
        let m: Mapping<u64> = env.map(dir.path("m"), 1000).unwrap();
        assert_eq!(m.len(), 1000);
        assert!(!m.is_empty());
        env.transact(|tx| {
            let all = tx.slice_mut(&m);
            assert!(all.iter().all(|x| *x == run));
            all.iter_mut().for_each(|x| *x += 1);
            Ok::<_, Error>(())
        })
        .unwrap();
        env.checkpoint().unwrap();
        env.sync().unwrap();
    }
}

#[test]
fn files_are_renamed_and_removed() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();

    env.transact(|tx| Ok::<_, Error>(tx.slice_mut(&m)[0] = 7))
        .unwrap();
    assert!(env.rename(dir.path("m"), dir.path("n")).is_err());
    assert!(env.remove(dir.path("m")).is_err());
    drop(m);
    env.rename(dir.path("m"), dir.path("n")).unwrap();
    let n: Mapping<u64> = env.map(dir.path("n"), 10).unwrap();
    env.query(|q| Ok::<_, Error>(assert_eq!(q.slice(&n)[0], 7)))
        .unwrap();
    let nested = env.transact(|_| env.remove(dir.path("n")));
    assert_eq!(nested.unwrap_err().kind(), ErrorKind::Nested);
    drop(n);
    env.remove(dir.path("n")).unwrap();
    assert!(env.remove(dir.path("n")).is_err());
    assert!(env.remove("a zero \0 byte").is_err());
    assert!(!dir.path("m").exists() && !dir.path("n").exists());
}

#[test]
fn snapshots_are_held_until_they_are_dropped() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    let put = |value| {
        env.transact(|tx| {
            tx.slice_mut(&m)[0] = value;
            Ok::<_, Error>(())
        })
        .unwrap();
    };
    let get = |id| env.query_at(id, |q| Ok::<_, Error>(q.slice(&m)[0]));

    put(1);
    let old = env.snapshot().unwrap();
    put(2);
    let new = env.snapshot().unwrap();
    put(3);
    assert_eq!(get(old.id()).unwrap(), 1);
    assert_eq!(get(new.id()).unwrap(), 2);
    let id = old.id();
    drop(old);
    assert!(get(id).is_err());
    let id = new.keep("named", 1000).unwrap();
    assert_eq!(env.find_snapshot("named").unwrap(), id);
    assert_eq!(get(id).unwrap(), 2);
    env.release_snapshot(id).unwrap();
    assert!(env.find_snapshot("named").is_err());
    assert!(env.find_snapshot("a\0b").is_err());
}

#[test]
fn a_part_is_undone_by_an_error_or_a_panic() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<u64> = env.map(dir.path("m"), 1000).unwrap();
    env.transact(|tx| {
        tx.slice_mut(&m)[0] = 1;
        let failed = tx.part(|tx| {
            tx.slice_mut(&m).fill(2);
            let why = env.find_snapshot("none").unwrap_err();
            tx.part(|_| Err::<(), _>(why))
        });
        assert!(failed.is_err());
        assert_eq!(tx.slice(&m)[..2], [1, 0]);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            tx.part::<(), Error>(|tx| {
                tx.slice_mut(&m)[999] = 3;
                panic!("out of here")
            })
        }));
        assert!(panic.is_err());
        assert_eq!(tx.slice(&m)[999], 0);
        let nine = tx.part(|tx| {
            tx.slice_mut(&m)[1] = 4;
            tx.part(|tx| {
                tx.slice_mut(&m)[2] = 5;
                Ok::<_, Error>(())
            })?;
            Ok::<_, Error>(tx.slice(&m)[1] + tx.slice(&m)[2])
        })?;
        assert_eq!(nine, 9);
        Ok::<_, Error>(())
    })
    .unwrap();
    env.query(|q| {
        assert_eq!(q.slice(&m)[..3], [1, 4, 5]);
        assert_eq!(q.slice(&m).iter().sum::<u64>(), 10);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn the_past_can_be_queried_and_compared() {
    let dir = Dir::new();
    let env = open(
        &dir.path(""),
        &Options::new().history(History::Commits(100)),
    );
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    let put = |value| {
        env.transact(|tx| {
            tx.slice_mut(&m)[3] = value;
            Ok::<_, Error>(())
        })
        .unwrap();
    };
    let get = |state| env.query_at(state, |q| Ok::<_, Error>(q.slice(&m)[3]));

    let zero = env.snapshot().unwrap();
    put(7);
    let then = std::time::SystemTime::now();
    put(8);
    let now = env.snapshot().unwrap();
    assert_eq!(get(at_time(then)).unwrap(), 7);
    assert_eq!(get(at_commit(0)).unwrap(), 0);
    assert!(get(at_commit(1 << 40)).is_err());
    let mut seen = Vec::new();
    env.diff(zero.id(), now.id(), |c| {
        assert!(c.file.ends_with("m") && c.offset == 24);
        seen.push((c.before.to_vec(), c.after.to_vec()));
        true
    })
    .unwrap();
    let bytes = |n: u64| n.to_ne_bytes().to_vec();
    assert_eq!(seen, [(bytes(0), bytes(8))]);
    let mut n = 0;
    env.diff(at_time(then), now.id(), |_| {
        n += 1;
        false
    })
    .unwrap();
    assert_eq!(n, 1);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        env.diff(zero.id(), now.id(), |_| panic!("out of here"))
    }));
    assert!(panic.is_err());
    assert!(env.diff(1 << 40, now.id(), |_| true).is_err());
}

#[test]
fn participants_are_listed() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    let only = || {
        let mut rows = env.participants().unwrap();
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    };
    let busy = env
        .transact(|tx| {
            tx.slice_mut(&m)[0] = 1;
            Ok::<_, Error>(only())
        })
        .unwrap();

    assert_eq!(busy.pid, u64::from(std::process::id()));
    assert_eq!(busy.activity, Activity::Update);
    assert_eq!(busy.pages_written, 1);
    assert!(!busy.command.is_empty());
    assert!(busy.waits_for.is_none());
    let query = env.query(|_| Ok::<_, Error>(only())).unwrap();
    assert_eq!(query.activity, Activity::Query);
    assert_eq!(only().activity, Activity::Idle);
    let held = env.snapshot().unwrap();
    let rows = env.participants().unwrap();
    assert!(rows.iter().any(|row| row.activity == Activity::Snapshot));
    drop(held);
    only();
}

#[test]
fn an_error_rolls_back() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<i32> = env.map(dir.path("m"), 10).unwrap();

    #[derive(Debug, PartialEq)]
    enum Mine {
        Enough,
        Library,
    }
    impl From<Error> for Mine {
        fn from(_: Error) -> Mine {
            Mine::Library
        }
    }
    let result = env.transact(|tx| {
        tx.slice_mut(&m)[3] = 7;
        assert_eq!(tx.slice(&m)[3], 7);
        Err::<(), _>(Mine::Enough)
    });
    assert_eq!(result, Err(Mine::Enough));
    let three = env.query(|q| Ok::<_, Error>(q.slice(&m)[3])).unwrap();
    assert_eq!(three, 0);
}

#[test]
fn a_panic_rolls_back_and_goes_on() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<i32> = env.map(dir.path("m"), 10).unwrap();

    for round in 0..3 {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            env.transact(|tx| {
                tx.slice_mut(&m)[0] = 99;
                if round < 9 {
                    panic!("round {round}");
                }
                Ok::<_, Error>(())
            })
        }));
        let words = caught.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*words, format!("round {round}"));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            env.query(|q| {
                assert_eq!(q.slice(&m)[0], 99);
                Ok::<_, Error>(())
            })
        }));
        assert!(caught.is_err());
    }
    // The environment is as it was, and in nobody's turn.
    let value = env.transact(|tx| Ok::<_, Error>(tx.slice(&m)[0])).unwrap();
    assert_eq!(value, 0);
}

#[test]
fn nested_transactions_are_refused() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<i32> = env.map(dir.path("m"), 10).unwrap();
    let nested = |result: Result<(), Error>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Nested);
    };

    env.transact(|tx| {
        let first = &mut tx.slice_mut(&m)[0];
        nested(env.transact(|tx| Ok(tx.slice_mut(&m)[0] = 5)));
        nested(env.clone().query(|q| Ok(assert_eq!(q.slice(&m)[0], 5))));
        nested(env.checkpoint());
        nested(env.map::<u8>(dir.path("other"), 10).map(drop));
        *first = 1;
        Ok::<_, Error>(())
    })
    .unwrap();
    env.query(|q| {
        assert_eq!(q.slice(&m)[0], 1);
        nested(env.query(|_| Ok(())));
        nested(env.transact(|tx| Ok(tx.slice_mut(&m)[0] = 5)));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_file_is_mapped_once_under_whatever_name() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    std::fs::hard_link(dir.path("m"), dir.path("hard")).unwrap();
    std::os::unix::fs::symlink(dir.path("m"), dir.path("soft")).unwrap();

    for name in ["m", "./m", "hard", "soft"] {
        let again = env.map::<u8>(dir.path(name), 10);
        assert_eq!(
            again.unwrap_err().kind(),
            ErrorKind::AlreadyMapped,
            "{name}"
        );
    }
    env.transact(|tx| Ok::<_, Error>(tx.slice_mut(&m)[0] = 258))
        .unwrap();
    drop(m);
    let bytes: Mapping<u8> = env.map(dir.path("m"), 10).unwrap();
    let first = env
        .query(|q| Ok::<_, Error>(q.slice(&bytes)[..2].to_vec()))
        .unwrap();
    assert_eq!(first, 258u16.to_ne_bytes());
}

#[test]
fn a_mapping_dropped_inside_ends_later() {
    let dir = Dir::new();
    let env = dir.env();
    let mut m: Option<Mapping<u64>> = Some(env.map(dir.path("m"), 10).unwrap());

    env.transact(|tx| {
        tx.slice_mut(m.as_ref().unwrap())[0] = 1;
        m = None;
        Ok::<_, Error>(())
    })
    .unwrap();
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    assert_eq!(env.query(|q| Ok::<_, Error>(q.slice(&m)[0])).unwrap(), 1);
}

#[test]
fn mappings_of_others_panic() {
    let (dir, dir2) = (Dir::new(), Dir::new());
    let (env, env2) = (dir.env(), dir2.env());
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    let m2: Mapping<u64> = env2.map(dir2.path("m"), 10).unwrap();

    let caught = catch_unwind(AssertUnwindSafe(|| {
        env.transact(|tx| Ok::<_, Error>(tx.slice_mut(&m2)[0] = 1))
    }));
    assert!(caught.is_err());
    let caught = catch_unwind(AssertUnwindSafe(|| {
        env.query(|q| Ok::<_, Error>(q.slice(&m2)[0]))
    }));
    assert!(caught.is_err());
    let caught = catch_unwind(AssertUnwindSafe(|| {
        env.transact(|tx| {
            let (a, b) = tx.pair_mut(&m, &m);
            a[0] = b[0] + 1;
            Ok::<_, Error>(())
        })
    }));
    assert!(caught.is_err());
    // Two environments at once, each with its own.
    env.transact(|a| {
        env2.transact(|b| {
            a.slice_mut(&m)[0] += 1;
            b.slice_mut(&m2)[0] += 2;
            Ok::<_, Error>(())
        })
    })
    .unwrap();
    assert_eq!(env.query(|q| Ok::<_, Error>(q.slice(&m)[0])).unwrap(), 1);
    assert_eq!(env2.query(|q| Ok::<_, Error>(q.slice(&m2)[0])).unwrap(), 2);
}

#[test]
fn two_mappings_are_lent_at_once() {
    let dir = Dir::new();
    let env = dir.env();
    let a: Mapping<u64> = env.map(dir.path("a"), 10).unwrap();
    let b: Mapping<[u8; 3]> = env.map(dir.path("b"), 10_000).unwrap();

    env.transact(|tx| {
        let (x, y) = tx.pair_mut(&a, &b);
        x[9] = 9;
        y[9999] = [1, 2, 3];
        Ok::<_, Error>(())
    })
    .unwrap();
    env.query(|q| {
        assert_eq!(q.slice(&a)[9], 9);
        assert_eq!(q.slice(&b)[9999], [1, 2, 3]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn threads_take_turns() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();

    std::thread::scope(|s| {
        for t in 0..4 {
            let (env, m) = (&env, &m);
            s.spawn(move || {
                for i in 0..200 {
                    let result = env.transact(|tx| {
                        let all = tx.slice_mut(m);
                        all[0] += 1;
                        all[1 + t] += 1;
                        if i % 10 == 9 {
                            return Err(Error::from(env.query(|_| Ok(())).unwrap_err()));
                        }
                        Ok(())
                    });
                    assert_eq!(result.is_err(), i % 10 == 9);
                    let (sum, total) = env
                        .query(|q| {
                            let all = q.slice(m);
                            Ok::<_, Error>((all[1..5].iter().sum::<u64>(), all[0]))
                        })
                        .unwrap();
                    assert_eq!(sum, total);
                }
            });
        }
    });
    let all = env.query(|q| Ok::<_, Error>(q.slice(&m).to_vec())).unwrap();
    assert_eq!(all[..5], [720, 180, 180, 180, 180]);
}

#[test]
fn resizing_keeps_the_elements() {
    let dir = Dir::new();
    let env = dir.env();
    let mut m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();

    env.transact(|tx| Ok::<_, Error>(tx.slice_mut(&m)[9] = 9))
        .unwrap();
    m.resize(1_000_000).unwrap();
    assert_eq!(m.len(), 1_000_000);
    env.transact(|tx| {
        let all = tx.slice_mut(&m);
        assert_eq!(all[9], 9);
        all[999_999] = 1;
        Ok::<_, Error>(())
    })
    .unwrap();
    m.resize(5).unwrap();
    assert_eq!(env.query(|q| Ok::<_, Error>(q.slice(&m).len())).unwrap(), 5);
    assert!(m.resize(0).is_err());
    assert!(m.resize(usize::MAX).is_err());
    assert_eq!(m.len(), 5);
}

/// Aligned to more than a page.
#[derive(Clone, Copy)]
#[repr(C, align(65536))]
struct Wide([u8; 65536]);

// SAFETY: bytes without padding.
unsafe impl xac::bytemuck::Zeroable for Wide {}
// SAFETY: as above.
unsafe impl xac::bytemuck::Pod for Wide {}

#[test]
fn sizes_out_of_range_are_refused() {
    let dir = Dir::new();
    let env = dir.env();
    assert!(env.map::<u64>(dir.path("m"), 0).is_err());
    assert!(env.map::<u64>(dir.path("m"), usize::MAX).is_err());
    assert!(env.map::<u64>(dir.path("m"), usize::MAX / 8).is_err());
    assert!(env.map::<()>(dir.path("m"), 10).is_err());
    assert!(env.map::<Wide>(dir.path("m"), 10).is_err());
    assert!(!dir.path("m").exists());
    let missing = env
        .map::<u64>(dir.path("no/such/directory"), 10)
        .unwrap_err();
    assert_eq!(missing.code(), 2);
    assert!(
        missing.to_string().contains("no/such/directory"),
        "{missing}"
    );
    assert!(env.map::<u64>("with\0zero", 10).is_err());
}

#[test]
fn attempts_have_a_limit() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    let raw = env.as_ptr();
    let mut runs = 0;

    let result = env.transact_at_most(3, |tx| {
        runs += 1;
        tx.slice_mut(&m)[0] = 1;
        // SAFETY: open; the transaction is rolled back at its end, as after a conflict.
        assert_eq!(unsafe { xac_sys::xac_abort_in(raw) }, 0);
        Ok::<_, Error>(())
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(runs, 3);
    let again = env.transact_at_most(3, |tx| {
        runs += 1;
        if runs < 6 {
            // SAFETY: as above.
            unsafe { xac_sys::xac_abort_in(raw) };
        }
        Ok::<_, Error>(tx.slice(&m)[0])
    });
    assert_eq!(again.unwrap(), 0);
    assert_eq!(runs, 6);
}

#[test]
fn system_calls_take_prepared_slices() {
    let dir = Dir::new();
    let env = dir.env();
    let m: Mapping<u8> = env.map(dir.path("m"), 100_000).unwrap();
    let mut file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .open(dir.path("plain"))
        .unwrap();

    env.transact(|tx| {
        tx.prepare_mut(&m, ..)?.fill(7);
        file.write_all(tx.prepare(&m, 100..50_000)?).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        tx.prepare_mut(&m, 60_000..=60_999)?.fill(0);
        file.read_exact(tx.prepare_mut(&m, 60_000..61_000)?)
            .unwrap();
        assert!(tx.prepare(&m, 5..5)?.is_empty());
        Ok::<_, Error>(())
    })
    .unwrap();
    let all = env.query(|q| Ok::<_, Error>(q.slice(&m).to_vec())).unwrap();
    assert_eq!(all, vec![7; 100_000]);
    // Pages that are not shown are refused, and nothing happens to them.
    let refused = env.transact(|tx| {
        file.seek(SeekFrom::Start(0)).unwrap();
        Ok::<_, Error>(file.read(&mut tx.slice_mut(&m)[90_000..]).is_err())
    });
    assert!(refused.unwrap());
}

#[test]
fn a_reader_opens_for_queries_only() {
    let dir = Dir::new();
    let env = open(&dir.path(""), &Options::new());
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    env.transact(|tx| Ok::<_, Error>(tx.slice_mut(&m)[0] = 5))
        .unwrap();
    drop((m, env));

    let reader = open(&dir.path(""), &Options::new().read_only());
    let m: Mapping<u64> = reader.map(dir.path("m"), 10).unwrap();
    assert_eq!(reader.query(|q| Ok::<_, Error>(q.slice(&m)[0])).unwrap(), 5);
    let refused = reader.transact(|tx| Ok::<_, Error>(tx.slice_mut(&m)[0] = 6));
    assert_eq!(refused.unwrap_err().code(), xac_sys::XAC_EREADONLY);
}

#[test]
fn options_are_passed_on() {
    let dir = Dir::new();
    let log = dir.path("log");
    let options = Options::new()
        .policy(Policy::OldestWins)
        .wait_ms(1000)
        .sync_delay_ms(5)
        .checkpoint_bytes(1 << 20)
        .log_directory(&log);
    let env = open(&dir.path(""), &options);
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    env.transact(|tx| Ok::<_, Error>(tx.slice_mut(&m)[0] = 5))
        .unwrap();
    env.sync().unwrap();
    assert!(log.read_dir().unwrap().count() > 0);
    drop((m, env));
    // SAFETY: the directory is ours.
    let refused = unsafe { Options::new().wait_ms(u64::MAX - 1).open(dir.path("db")) };
    assert_eq!(refused.err().unwrap().code(), 22);
    // SAFETY: no other thread touches slices, and stores are announced.
    let trusted = unsafe { Options::new().checking(Checking::Trusted) }.log_directory(&log);
    let env = open(&dir.path(""), &trusted);
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    env.transact(|tx| Ok::<_, Error>(tx.prepare_mut(&m, ..1)?[0] += 1))
        .unwrap();
    assert_eq!(env.query(|q| Ok::<_, Error>(q.slice(&m)[0])).unwrap(), 6);
}

/// In a child: prints what opening says under a variable that weakens checking.
#[test]
#[ignore = "run by another test"]
fn child_with_variable() {
    let dir = child_dir().unwrap();
    std::env::set_var("XAC_CHECKING", "trusted");
    // SAFETY: the directory is the test's own.
    let refused = unsafe { Options::new().open(dir.join("db")) }
        .err()
        .unwrap();
    assert!(refused.to_string().contains("XAC_CHECKING"), "{refused}");
    assert!(!dir.join("db").exists());
    std::env::set_var("XAC_CHECKING", "strict");
    // SAFETY: as above.
    unsafe { Options::new().open(dir.join("db")) }.unwrap();
}

#[test]
fn a_variable_cannot_weaken_checking() {
    let dir = Dir::new();
    let done = child("child_with_variable", &dir.path(""))
        .wait_with_output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// In a child: a slice is given to another thread that is the first to touch it.
#[test]
fn tokens_name_what_was_committed() {
    let dir = Dir::new();
    let env = open(&dir.path(""), &Options::new());
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    assert!(env.token().is_err()); // the thread has ended nothing
    env.transact(|tx| {
        tx.slice_mut(&m)[0] = 7;
        Ok::<_, Error>(())
    })
    .unwrap();
    let token = env.token().unwrap();
    assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
    assert!("1.2".parse::<Token>().is_err());
    assert!("1.\0".parse::<Token>().is_err());
    let wait = std::time::Duration::ZERO;
    assert_eq!(env.fate(&token, wait).unwrap(), Fate::Committed);
    let seen = env.query_after(&token, wait, |q| Ok::<_, Error>(q.slice(&m)[0]));
    assert_eq!(seen.unwrap(), 7);
    let seen = env.query_latest(wait, |q| Ok::<_, Error>(q.slice(&m)[0]));
    assert_eq!(seen.unwrap(), 7);
    let mut parts: Vec<String> = token.to_string().split('.').map(str::to_owned).collect();
    parts[0] = (parts[0].parse::<u64>().unwrap() + 1).to_string();
    let later: Token = parts.join(".").parse().unwrap();
    assert_eq!(env.fate(&later, wait).unwrap(), Fate::Uncertain);
    let seen = env.query_after(&later, wait, |q| Ok::<_, Error>(q.slice(&m)[0]));
    assert_eq!(seen.unwrap_err().code(), 110); // ETIMEDOUT
}

#[test]
#[ignore = "run by another test"]
fn child_touches_in_another_thread() {
    let dir = child_dir().unwrap();
    let env = open(&dir, &Options::new().durable(false));
    let m: Mapping<u64> = env.map(dir.join("m"), 10).unwrap();
    env.transact(|tx| {
        let all = tx.prepare_mut(&m, ..)?;
        std::thread::scope(|s| {
            s.spawn(|| all[0] = 4);
        });
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_eq!(env.query(|q| Ok::<_, Error>(q.slice(&m)[0])).unwrap(), 4);
    let _ = env.transact(|tx| {
        let all = tx.slice_mut(&m);
        std::thread::scope(|s| {
            s.spawn(|| all[0] = 5);
        });
        Ok::<_, Error>(())
    });
}

#[test]
fn a_thread_that_is_first_to_touch_stops_the_process() {
    let dir = Dir::new();
    let child = child("child_touches_in_another_thread", &dir.path(""));
    let done = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.signal(), Some(6), "{words}");
    assert!(
        words.contains("a thread that has no transaction"),
        "{words}"
    );
    // What had been committed before is there.
    let env = dir.env();
    let m: Mapping<u64> = env.map(dir.path("m"), 10).unwrap();
    let first = env.query(|q| Ok::<_, Error>(q.slice(&m)[0])).unwrap();
    assert!(first == 4 || first == 0); // not durable: the last state of the file, or none
}
