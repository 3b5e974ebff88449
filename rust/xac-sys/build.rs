// SPDX-License-Identifier: MIT
//! Links libxac, where pkg-config finds it.

fn main() {
    if let Err(why) = pkg_config::Config::new()
        .atleast_version("0.2.0")
        .probe("libxac")
    {
        eprintln!("libxac is not installed, or pkg-config does not find libxac.pc: {why}");
        std::process::exit(1);
    }
}
