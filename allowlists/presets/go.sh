# go get and go build with the default GOPROXY.

PRESET_TITLE="Go"
PRESET_DESCRIPTION="The Go module proxy and checksum database"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  "proxy.golang.org"
  "sum.golang.org"
)
