# npx playwright install.

PRESET_TITLE="Playwright"
PRESET_DESCRIPTION="Browser downloads of Playwright"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  "cdn.playwright.dev"
  "playwright.download.prss.microsoft.com"
)
