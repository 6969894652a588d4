/**
 * Names that speak git over SSH, state of 2026-11-21: those of `allowlists/presets/git-hosts.sh` behind
 * which an SSH server answers. An ordered rule for one of them that names no port opens 22 as well.
 */
export const GIT_SSH_HOSTS: ReadonlySet<string> = new Set(["github.com", "ssh.github.com", "gitlab.com", "altssh.gitlab.com"]);
