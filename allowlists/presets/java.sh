# Maven and Gradle builds.

PRESET_TITLE="Java"
PRESET_DESCRIPTION="Maven Central and Gradle"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  # Maven Central: the name that tools use, and the older one
  "repo.maven.apache.org"
  "repo1.maven.org"
  # Gradle: plugins, their files, the wrapper's distributions
  "plugins.gradle.org"
  "plugins-artifacts.gradle.org"
  "services.gradle.org"
)
