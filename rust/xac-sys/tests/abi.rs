// SPDX-License-Identifier: MIT
//! The constants and structures are those of the headers of C.  tests/rust/check_rust.sh compiles
//! a C program that prints the same facts, and names what it printed in XAC_C_FACTS.

use std::fmt::Write;
use std::mem::{align_of, size_of};

fn facts() -> String {
    let mut text = String::new();
    for (name, value) in xac_sys::CONSTANTS {
        writeln!(text, "{name} {value}").unwrap();
    }
    let options = std::mem::MaybeUninit::<xac_sys::xac_options>::uninit();
    let base = options.as_ptr();
    // SAFETY: addresses of fields only.
    let (log, value) = unsafe {
        (
            std::ptr::addr_of!((*base).log_directory) as usize - base as usize,
            std::ptr::addr_of!((*base).value) as usize - base as usize,
        )
    };
    writeln!(text, "xac_options {}", size_of::<xac_sys::xac_options>()).unwrap();
    writeln!(text, "log_directory {log}").unwrap();
    writeln!(text, "value {value}").unwrap();
    writeln!(text, "xac_change {}", size_of::<xac_sys::xac_change>()).unwrap();
    writeln!(
        text,
        "xac_token {} {}",
        size_of::<xac_sys::xac_token>(),
        xac_sys::XAC_TOKEN_TEXT
    )
    .unwrap();
    for state in [
        xac_sys::XAC_AT_COMMIT(5),
        xac_sys::XAC_AT_TIME(5),
        xac_sys::XAC_HISTORY_COMMITS(5),
        xac_sys::XAC_HISTORY_BYTES(5),
    ] {
        writeln!(text, "state {state}").unwrap();
    }
    assert_eq!(align_of::<xac_sys::xac_options>(), 8);
    let party = std::mem::MaybeUninit::<xac_sys::xac_party>::uninit();
    let base = party.as_ptr();
    // SAFETY: the address of a field only.
    let last = unsafe { std::ptr::addr_of!((*base).failed_ns) as usize - base as usize };
    writeln!(text, "xac_party {}", size_of::<xac_sys::xac_party>()).unwrap();
    writeln!(text, "failed_ns {last}").unwrap();
    text
}

#[test]
fn constants_are_those_of_c() {
    match std::env::var_os("XAC_C_FACTS") {
        Some(path) => assert_eq!(facts(), std::fs::read_to_string(path).unwrap()),
        None => println!("XAC_C_FACTS is not set: nothing to compare with"),
    }
}

#[test]
fn library_is_not_older_than_the_bindings() {
    // SAFETY: static text.
    let version = unsafe { std::ffi::CStr::from_ptr(xac_sys::xac_version().cast()) };
    assert!(version.to_str().unwrap() >= env!("CARGO_PKG_VERSION"));
}

#[test]
fn options_are_filled_in() {
    let mut options = std::mem::MaybeUninit::<xac_sys::xac_options>::zeroed();
    // SAFETY: room for the structure, whose size is given.
    let options = unsafe {
        xac_sys::xac_options_init(options.as_mut_ptr(), size_of::<xac_sys::xac_options>());
        options.assume_init()
    };
    assert_eq!(options.size, size_of::<xac_sys::xac_options>());
    assert_eq!(options.flags, xac_sys::XAC_DURABLE);
    assert!(options.log_directory.is_null());
    assert!(options
        .value
        .iter()
        .all(|v| *v == xac_sys::XAC_OPTION_UNSET));
}
