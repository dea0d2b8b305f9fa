//! Empty archives in place of libbsd and libuuid, which the bindings of Aeron's client and driver
//! link unconditionally; `toolchain.cmake` has Aeron do without them.

use std::path::PathBuf;
use std::{env, fs};

const EMPTY_ARCHIVE: &[u8] = b"!<arch>\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for name in ["bsd", "uuid"] {
        fs::write(out.join(format!("lib{name}.a")), EMPTY_ARCHIVE)?;
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    Ok(())
}
