# GitHub and nothing else.

PRESET_TITLE="GitHub Only"
PRESET_DESCRIPTION="GitHub API and git operations"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  "github.com"
  "*.github.com"
  "api.github.com"
  "raw.githubusercontent.com"
  # raw files, release files, avatars, large files
  "*.githubusercontent.com"
)
