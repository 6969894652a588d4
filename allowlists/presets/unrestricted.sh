# Everything is reachable. A box with this preset has no firewall, and says so at its start.

PRESET_TITLE="Unrestricted"
PRESET_DESCRIPTION="Full network access"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="allow"

PRESET=()
