# cargo and rustup.

PRESET_TITLE="Rust"
PRESET_DESCRIPTION="crates.io and rustup"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  # sparse index, crate files, API
  "index.crates.io"
  "static.crates.io"
  "crates.io"
  # toolchains and the installer
  "static.rust-lang.org"
  "sh.rustup.rs"
)
