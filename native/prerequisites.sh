#!/bin/sh
# Checks for the programs and libraries that a build needs. As root it installs missing Debian
# packages; otherwise it prints what to install. Prints nothing if nothing is missing.
#
# usage: native/prerequisites.sh [PYTHON [wheel]]
#
# PYTHON: the interpreter for the environment; wheel: check only what the build of a wheel needs
set -eu

python=${1:-python3}
purpose=${2:-all}
rust_needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$(dirname "$0")/Cargo.toml")
java_needed=17
failed=

complain() {
    printf 'aerotape: %s\n' "$1" >&2
    failed=yes
}

# at_least HAVE WANTED: compares dotted versions
at_least() {
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

missing_packages() {
    command -v cc >/dev/null && command -v c++ >/dev/null && command -v make >/dev/null ||
        echo build-essential
    if command -v "$python" >/dev/null; then
        "$python" -c 'import ensurepip' 2>/dev/null || echo python3-venv
    fi
    [ "$purpose" = all ] || return 0
    command -v mvn >/dev/null || echo maven
    # Only for tests; its programs are not in PATH.
    [ -x "$(find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | head -n 1)" ] ||
        echo postgresql
    if command -v "$python" >/dev/null; then
        # The extension does without, but a test program of the native crate links with it.
        "$python" -c 'import sys; from pathlib import Path; from sysconfig import get_config_var as get
sys.exit(not Path(get("LIBDIR"), get("LDLIBRARY")).exists())' || echo python3-dev
    fi
}

packages=$(missing_packages | sort -u | tr '\n' ' ')
if [ -n "$packages" ]; then
    if ! command -v apt-get >/dev/null; then
        complain "this is not a Debian system: install what these Debian packages give: $packages"
    elif [ "$(id -u)" -ne 0 ]; then
        complain "Debian packages are missing. Run:  sudo apt-get install $packages"
    else
        echo "aerotape: installing Debian packages: $packages"
        apt-get update -q >/dev/null
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
    fi
fi

if ! command -v "$python" >/dev/null; then
    complain "there is no $python. Install Python 3.11 or newer, or name one: make PYTHON=…"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    complain "$("$python" --version) is too old: install Python 3.11 or newer, or name one: make PYTHON=…"
fi

if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    complain "there is no Rust. Install $rust_needed or newer from https://rustup.rs"
else
    rust=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
    if ! at_least "${rust:-0}" "$rust_needed"; then
        complain "Rust ${rust:-that does not run} is too old: $rust_needed or newer is needed. Run:  rustup update stable   (https://rustup.rs; Debian's own package is too old)"
    fi
fi

if [ "$purpose" != all ]; then
    :
elif ! command -v java >/dev/null || ! command -v javac >/dev/null; then
    complain "there is no JDK $java_needed (java and javac; Spark and the tests run on it). Run:  sudo apt-get install openjdk-$java_needed-jdk-headless"
else
    jdk=$(javac -version 2>&1 | sed -n 's/^javac \([0-9.]*\).*/\1/p')
    jvm=$(java -version 2>&1 | sed -n 's/.* version "\([0-9.]*\).*/\1/p' | head -n 1)
    for version in "${jdk:-0}" "${jvm:-0}"; do
        if ! at_least "$version" "$java_needed"; then
            complain "Java $version is too old: JDK $java_needed or newer is needed. Run:  sudo apt-get install openjdk-$java_needed-jdk-headless   (and choose it with update-alternatives, or put it first in PATH)"
            break
        fi
    done
fi

[ -z "$failed" ]
