# dotnet restore.

PRESET_TITLE=".NET"
PRESET_DESCRIPTION="NuGet"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  "api.nuget.org"
  "www.nuget.org"
  "globalcdn.nuget.org"
)
