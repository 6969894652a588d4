# What most projects in JavaScript, Python and Rust need.

PRESET_TITLE="Development"
PRESET_DESCRIPTION="GitHub + npm + PyPI + common dev tools"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  "github.com"
  "*.github.com"
  "api.github.com"
  "*.githubusercontent.com"
  "registry.npmjs.org"
  "*.npmjs.org"
  "pypi.org"
  "*.pypi.org"
  "files.pythonhosted.org"
  "crates.io"
  "*.crates.io"
)
