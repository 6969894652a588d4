# Nothing is reachable.

PRESET_TITLE="Lockdown"
PRESET_DESCRIPTION="Deny all external access"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=()
