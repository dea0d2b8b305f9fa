//! Empty libraries in place of libbsd and libuuid, which the bindings of Aeron's client and driver
//! link unconditionally; `toolchain.cmake` has Aeron do without them.

use std::path::PathBuf;
use std::{env, fs};

const EMPTY_ARCHIVE: &[u8] = b"!<arch>\n";
/// For linkers that look for shared libraries alone: a script without an input.
const EMPTY_SCRIPT: &[u8] = b"INPUT ( )\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for name in ["bsd", "uuid"] {
        fs::write(out.join(format!("lib{name}.a")), EMPTY_ARCHIVE)?;
        fs::write(out.join(format!("lib{name}.so")), EMPTY_SCRIPT)?;
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    Ok(())
}
