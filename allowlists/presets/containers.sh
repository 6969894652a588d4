# Pulling (and pushing) container images.

PRESET_TITLE="Containers"
PRESET_DESCRIPTION="Docker Hub, GitHub, Microsoft and Quay registries"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  # Docker Hub: tokens, registry, layers
  "auth.docker.io"
  "registry-1.docker.io"
  "production.cloudflare.docker.com"
  # GitHub: registry, layers
  "ghcr.io"
  "pkg-containers.githubusercontent.com"
  # Microsoft, Quay
  "mcr.microsoft.com"
  "quay.io"
)
