# A VS Code server inside the box.

PRESET_TITLE="Editors"
PRESET_DESCRIPTION="Visual Studio Code: updates, server download, extensions"
PRESET_DATE="2026-11-21"
# What the rest of the world gets when this preset is used as a policy of its own.
PRESET_CATCH_ALL="deny"

PRESET=(
  "update.code.visualstudio.com"
  "marketplace.visualstudio.com"
  # extension files: one name below these for each publisher
  "*.gallery.vsassets.io"
  "*.gallerycdn.vsassets.io"
  # parts of the editor, and the server's download
  "main.vscode-cdn.net"
  "vscode.download.prss.microsoft.com"
)
