// SPDX-License-Identifier: MIT
//! What the tests share: a directory of their own, and children.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use xac::{Env, Options};

/// A directory that is removed at the end.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Dir {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("xac-rust-{}-{n}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Dir(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn env(&self) -> Env {
        open(&self.0, &Options::new().durable(false))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Open the environment `db` of a directory.
pub fn open(dir: &Path, options: &Options) -> Env {
    // SAFETY: the directory is the test's own.
    unsafe { options.open(dir.join("db")) }.unwrap()
}

/// The directory that a child is to work in.
pub fn child_dir() -> Option<PathBuf> {
    std::env::var_os("XAC_RUST_CHILD").map(PathBuf::from)
}

/// Run a test of this program, which is marked `#[ignore]`, in a process of its own.
pub fn child(test: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("XAC_RUST_CHILD", dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}
