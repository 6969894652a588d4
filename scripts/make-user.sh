#!/bin/sh
# Runs once, in the image build: gives the box's account the ids of the host user.
# usage: make-user.sh UID GID
set -eu

uid=$1
gid=$2
home=/home/agent

if ! getent group "$gid" >/dev/null; then
  groupadd --gid "$gid" agent
fi

# Root keeps its own account and home: what root reads at a login must not lie where the agent writes.
if [ "$uid" -ne 0 ]; then
  taken=$(getent passwd "$uid" | cut -d: -f1)
  if [ -n "$taken" ]; then
    usermod --login agent --gid "$gid" --home "$home" --shell /bin/bash "$taken"
  else
    useradd --uid "$uid" --gid "$gid" --home-dir "$home" --no-create-home --shell /bin/bash --no-log-init agent
  fi
fi

# New volumes take their first content and their owner from these folders.
mkdir -p "$home/.cache" "$home/.agentbox-login" "$home/.ssh"
cat >"$home/.bashrc" <<'RC'
# Made with the image; yours to change, the file lives in the volume of this project.
case $- in *i*) ;; *) return ;; esac
shopt -s histappend checkwinsize
HISTSIZE=10000
HISTFILESIZE=20000
PROMPT_COMMAND='history -a'
PS1='\[\e[1m\]box\[\e[0m\]:\w\$ '
alias ls='ls --color=auto'
RC
printf '%s\n' '[ -f ~/.bashrc ] && . ~/.bashrc' >"$home/.profile"
chmod 0700 "$home/.ssh" "$home/.agentbox-login"
chown -R "$uid:$gid" "$home"
