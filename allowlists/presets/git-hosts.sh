# Everything that clone, fetch, push and release downloads need.

PRESET_TITLE="Git hosts"
PRESET_DESCRIPTION="GitHub and GitLab: pages, API, archives, release files, large files, SSH on 443"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  "github.com"
  "api.github.com"
  # archives of a branch or tag
  "codeload.github.com"
  "raw.githubusercontent.com"
  # release files: the older and the newer store
  "objects.githubusercontent.com"
  "release-assets.githubusercontent.com"
  # large file storage
  "lfs.github.com"
  "github-cloud.githubusercontent.com"
  # SSH on the port that networks leave open
  "tcp://ssh.github.com:443"

  "gitlab.com"
  "registry.gitlab.com"
  "tcp://altssh.gitlab.com:443"
)
