# What every firewalled box may reach. Edit freely, then run: agentbox --rebuild
#
# One entry a word; all of it is explained in docs/network.md:
#   "example.com"                 this name, port 443
#   "*.example.com"               every name below it, but not example.com itself
#   "**.example.com"              example.com and every name below it
#   "example.com:443,8443"        other ports
#   "http://example.com"          ports 80 and 443
#   "192.0.2.10:5432"             an address, or a block such as "192.0.2.0/24"
#   "tcp://ssh.example.com:443"   a port that speaks neither TLS nor HTTP
#
# The file is read as data and never executed: plain quoted words only, no $variables, no commands.

ALLOWED_SERVICES=(
  # Model APIs and sign-in of OpenAI (Codex, OpenCode)
  "api.openai.com"
  "auth.openai.com"
  "chatgpt.com"
  "chat.openai.com"
  "platform.openai.com"

  # Claude: model API, sign-in, token refresh, updates and plugins, hosted connectors, changelog
  "api.anthropic.com"
  "claude.ai"
  "claude.com"
  "platform.claude.com"
  "downloads.claude.ai"
  "mcp-proxy.anthropic.com"
  "raw.githubusercontent.com"

  # GitHub: pages, API, archives, release files, large files; SSH on port 443
  # (SSH on port 22 is open to the ranges in github.sh while github.com stands here.)
  "github.com"
  "api.github.com"
  "codeload.github.com"
  "objects.githubusercontent.com"
  "release-assets.githubusercontent.com"
  "lfs.github.com"
  "github-cloud.githubusercontent.com"
  "tcp://ssh.github.com:443"

  # GitLab: the same
  "gitlab.com"
  "registry.gitlab.com"
  "tcp://altssh.gitlab.com:443"

  # Packages: npm, PyPI, Maven Central
  "registry.npmjs.org"
  "pypi.org"
  "files.pythonhosted.org"
  "repo.maven.apache.org"
  "repo1.maven.org"
)

# These must resolve and answer, or the box does not start. Another agent's own host takes the place
# of api.anthropic.com. Every name here must be in the list above.
CRITICAL_SERVICES=(
  "api.anthropic.com"
  "github.com"
)
