# gem and bundler.

PRESET_TITLE="Ruby"
PRESET_DESCRIPTION="RubyGems"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  "rubygems.org"
  "index.rubygems.org"
  "api.rubygems.org"
)
