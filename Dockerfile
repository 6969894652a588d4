# The box: Debian's tools, a Node for the entrypoint, the agents, and nothing that raises privileges.
# Built by `agentbox`, which assembles the context (cli/image/) and labels the image with its hash.
# Only syntax that the classic builder knows, since an engine without BuildKit is enough.
ARG BASE_IMAGE=node:24-bookworm-slim
FROM ${BASE_IMAGE}

ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      bash bind9-dnsutils ca-certificates conntrack curl fd-find git ipset iptables iproute2 jq less \
      nftables openssh-client procps python3 ripgrep ulogd2 ulogd2-json vim-tiny wget \
 && ln -s /usr/bin/fdfind /usr/local/bin/fd \
 && ln -s /usr/bin/vim.tiny /usr/local/bin/vim \
 && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old

# Extra Debian packages, since there is no sudo in the box.
ARG PACKAGES=""
RUN if [ -n "$PACKAGES" ]; then \
      apt-get update \
   && apt-get install -y --no-install-recommends $PACKAGES \
   && rm -rf /var/lib/apt/lists/*; \
    fi

# Certificates of the site's own authority, one a file; the folder may be empty.
COPY ca/ /usr/local/share/ca-certificates/agentbox/
RUN update-ca-certificates

# A new epoch repeats the installation, which is how `agentbox --rebuild` gets the newest agents.
COPY install-agents.mjs /usr/local/lib/agentbox/
ARG AGENTS="claude"
ARG AGENTS_EPOCH=""
RUN echo "agents as of: ${AGENTS_EPOCH}" \
 && NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
      node /usr/local/lib/agentbox/install-agents.mjs $AGENTS

# The agent's ids are the host user's, so that files keep their owner. Both may be taken already (gid 20
# is Debian's dialout, uid 1000 the node image's user): the account that holds the uid is renamed.
ARG AGENT_UID=1000
ARG AGENT_GID=1000
COPY make-user.sh /usr/local/lib/agentbox/
RUN sh /usr/local/lib/agentbox/make-user.sh "$AGENT_UID" "$AGENT_GID"

# Only keeper and proxy enter this directory. In it lie their sockets (a tmpfs is mounted there, which takes over the
# mode of what it covers) and the session's log.
RUN install -d -m 0710 -o 64991 -g 64990 /var/lib/agentbox-keeper \
 && install -d -m 1777 /var/lib/agentbox-keeper/run \
 && install -d -m 0755 /var/lib/agentbox-keeper/log /run/agentbox /etc/claude-code \
 && ln -s /run/agentbox/policy.md /etc/claude-code/CLAUDE.md

COPY entrypoint.mjs entrypoint-main.mjs keeper.mjs keeper-main.mjs proxy.mjs authority.mjs control.mjs /usr/local/lib/agentbox/
COPY allowlists/ /usr/local/share/agentbox/allowlists/
# The compile cache is made now, by root, and only read afterwards; no program in a box keeps a setuid bit.
# Keeper and proxy write theirs under their own uids, which Node puts into its name.
RUN install -d -m 1777 /usr/local/lib/agentbox/cache \
 && node --disable-sigusr1 /usr/local/lib/agentbox/entrypoint.mjs --warm-cache \
 && find / -xdev -type f -perm /6000 -exec chmod a-s '{}' + \
 && chown -R root:root /usr/local/lib/agentbox /usr/local/share/agentbox \
 && chmod -R a+rX,go-w,-t /usr/local/lib/agentbox /usr/local/share/agentbox

ENV DEBIAN_FRONTEND=
USER 0:0
WORKDIR /
# Without the option a signal would open Node's inspector.
ENTRYPOINT ["/usr/local/bin/node", "--disable-sigusr1", "/usr/local/lib/agentbox/entrypoint.mjs"]
CMD []
