// SPDX-License-Identifier: MIT
//! Processes move amounts between accounts, and are killed: sums stay right, and nothing that was
//! acknowledged is lost.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use common::{child, child_dir, open, Dir};
use xac::{Env, Error, Mapping, Options};

const ACCOUNTS: usize = 2000;
const START: i64 = 1000;
const WRITERS: usize = 3;

fn attach(dir: &Path) -> (Env, Mapping<i64>, Mapping<u64>) {
    let env = open(dir, &Options::new());
    let accounts = env.map(dir.join("accounts"), ACCOUNTS).unwrap();
    let numbers = env.map(dir.join("numbers"), WRITERS).unwrap();
    (env, accounts, numbers)
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Moves amounts until it is killed.  After each commit it appends a byte to its file.
#[test]
#[ignore = "run by another test"]
fn child_moves_amounts() {
    let dir = child_dir().unwrap();
    let writer: usize = std::env::var("XAC_RUST_WRITER").unwrap().parse().unwrap();
    let (env, accounts, numbers) = attach(&dir);
    let mut state = u64::from(std::process::id());
    let mut acknowledged = std::fs::File::options()
        .create(true)
        .append(true)
        .open(dir.join(format!("acknowledged-{writer}")))
        .unwrap();
    loop {
        let from = random(&mut state) as usize % ACCOUNTS;
        let to = random(&mut state) as usize % ACCOUNTS;
        let amount = (random(&mut state) % 100) as i64;
        let gives_up = random(&mut state) % 8 == 0;
        let result = env.transact(|tx| {
            let (a, n) = tx.pair_mut(&accounts, &numbers);
            a[from] -= amount;
            if gives_up {
                return Err(End::GivenUp);
            }
            a[to] += amount;
            n[writer] += 1;
            Ok(())
        });
        match result {
            Ok(()) => acknowledged.write_all(b".").unwrap(),
            Err(End::GivenUp) => assert!(gives_up),
            Err(End::Failed(why)) => panic!("{why}"),
        }
    }
}

/// How a transaction ends that does not commit.
enum End {
    GivenUp,
    Failed(Error),
}

impl From<Error> for End {
    fn from(why: Error) -> Self {
        End::Failed(why)
    }
}

fn acknowledged(dir: &Path, writer: usize) -> u64 {
    std::fs::metadata(dir.join(format!("acknowledged-{writer}"))).map_or(0, |found| found.len())
}

/// Beside those that live: what is acknowledged is asked before the snapshot is taken.
fn verify(dir: &Path) -> u64 {
    let before: Vec<u64> = (0..WRITERS).map(|w| acknowledged(dir, w)).collect();
    let (env, accounts, numbers) = attach(dir);
    let (sum, counted) = env
        .query(|q| {
            let sum: i64 = q.slice(&accounts).iter().sum();
            Ok::<_, Error>((sum, q.slice(&numbers).to_vec()))
        })
        .unwrap();
    assert_eq!(sum, START * ACCOUNTS as i64);
    for w in 0..WRITERS {
        assert!(
            counted[w] >= before[w],
            "writer {w}: {} of {}",
            counted[w],
            before[w]
        );
    }
    counted.iter().sum()
}

fn writer(dir: &Path, w: usize) -> Child {
    std::env::set_var("XAC_RUST_WRITER", w.to_string());
    child("child_moves_amounts", dir)
}

#[test]
fn killed_processes_lose_nothing() {
    let dir = Dir::new();
    let path = dir.path("");
    {
        let (env, accounts, _numbers) = attach(&path);
        env.transact(|tx| Ok::<_, Error>(tx.slice_mut(&accounts).fill(START)))
            .unwrap();
    }
    let mut state = 20050101;
    for round in 0..15 {
        let had = acknowledged(&path, 0);
        let mut children: Vec<Child> = (0..WRITERS).map(|w| writer(&path, w)).collect();
        while acknowledged(&path, 0) < had + 5 {
            assert!(
                children[0].try_wait().unwrap().is_none(),
                "a writer has failed"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(random(&mut state) % 20_000));
        // The first one dies while others live, or all die together.
        children[0].kill().unwrap();
        children[0].wait().unwrap();
        if round % 2 == 0 {
            verify(&path);
        }
        for child in &mut children[1..] {
            child.kill().unwrap();
        }
        for child in &mut children[1..] {
            child.wait().unwrap();
        }
        let total = verify(&path);
        assert!(total > round);
    }
}
