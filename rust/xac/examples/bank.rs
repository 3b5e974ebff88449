// SPDX-License-Identifier: MIT
//! Accounts in a file, shared by any number of processes.
//!
//! usage: bank DIRECTORY [FROM TO AMOUNT]
//!
//! Moves an amount, if there is so much, and prints the sum over all accounts, which never changes.
//! Kill it at any moment: a transfer is there or is not.

use std::process::ExitCode;

use xac::bytemuck::{Pod, Zeroable};
use xac::{Env, Error, Mapping};

const ACCOUNTS: usize = 100;
const START: i64 = 1000;

/// An account: any bytes are one.
#[derive(Clone, Copy)]
#[repr(C)]
struct Account {
    balance: i64,
    transfers: u64,
}

// SAFETY: integers without padding; zero bytes are an account.
unsafe impl Zeroable for Account {}
// SAFETY: as above.
unsafe impl Pod for Account {}

/// What a transfer may end with.
#[derive(Debug)]
enum Refused {
    NotEnough(i64),
    Library(Error),
}

impl From<Error> for Refused {
    fn from(why: Error) -> Self {
        Refused::Library(why)
    }
}

fn run(args: &[String]) -> Result<(), Refused> {
    let dir = std::path::Path::new(&args[0]);
    // SAFETY: nothing but this program uses the directory.
    let env = unsafe { Env::open(dir.join("db"))? };
    let accounts: Mapping<Account> = env.map(dir.join("accounts"), ACCOUNTS)?;

    env.transact(|tx| {
        let all = tx.slice_mut(&accounts);
        if all.iter().all(|a| a.balance == 0 && a.transfers == 0) {
            all.iter_mut().for_each(|a| a.balance = START);
        }
        Ok::<_, Error>(())
    })?;
    if let [_, from, to, amount] = args {
        let number = |text: &String| text.parse::<usize>().expect("a number");
        let (from, to, amount) = (number(from), number(to), number(amount) as i64);
        env.transact(|tx| {
            let all = tx.slice_mut(&accounts);
            all[from].balance -= amount;
            all[from].transfers += 1;
            all[to].balance += amount;
            if all[from].balance < 0 {
                return Err(Refused::NotEnough(all[from].balance + amount)); // rolls back
            }
            Ok(())
        })?;
    }
    let (sum, transfers) = env.query(|q| {
        let all = q.slice(&accounts);
        let sum: i64 = all.iter().map(|a| a.balance).sum();
        Ok::<_, Error>((sum, all.iter().map(|a| a.transfers).sum::<u64>()))
    })?;
    println!("sum {sum}, {transfers} transfers");
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.len() != 1 && args.len() != 4 {
        eprintln!("usage: bank DIRECTORY [FROM TO AMOUNT]");
        return ExitCode::FAILURE;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refused::NotEnough(has)) => {
            eprintln!("there is only {has}");
            ExitCode::FAILURE
        }
        Err(Refused::Library(why)) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
