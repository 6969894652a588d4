# What every file of tests in real boxes shares. A project is a fresh directory; `box` runs a command in it.

bats_require_minimum_version 1.13.0

# Makes the directory of a project and enters it.
make_project() {
  PROJECT=${1:-$(mktemp -d "${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/project-XXXXXX")}
  mkdir -p "$PROJECT"
  cd "$PROJECT" || return
}

# Options of every box: the lab is its internet.
lab_options() {
  printf '%s\n' --network "$LAB_NETWORK" --dns "$LAB_DNS"
}

# box [OPTION…] -- COMMAND…: runs a command in a box whose firewall is on.
box() {
  AGENTBOX_FIREWALL=1 "$AGENTBOX" run --network "$LAB_NETWORK" --dns "$LAB_DNS" "$@"
}

# The same box without a firewall: the positive control of every refusal.
box_off() {
  AGENTBOX_FIREWALL=0 "$AGENTBOX" run --network "$LAB_NETWORK" --dns "$LAB_DNS" "$@"
}

# as_user UID GID COMMAND…: as another user of this machine who may talk to the engine.
as_user() {
  local uid=$1 gid=$2
  shift 2
  HOME=$USERS/home-$uid setpriv --reuid "$uid" --regid "$gid" --groups "$(stat -Lc %g /var/run/docker.sock)" -- "$@"
}

# user_box UID GID VERB [OPTION…]: agentbox VERB with the firewall on, as another user, in a project of theirs.
user_box() {
  local uid=$1 gid=$2 verb=$3
  shift 3
  AGENTBOX_FIREWALL=1 as_user "$uid" "$gid" "$USER_AGENTBOX" "$verb" --agents "claude codex" --ca-file "$USERS/ca.pem" --network "$LAB_NETWORK" --dns "$LAB_DNS" "$@"
}

# in_topology container|sidecar VERB…: agentbox as the user whose firewalled boxes have that topology: an
# ordinary user's have one container, root's always have the sidecar.
in_topology() {
  local topology=$1
  shift
  case $topology in
    sidecar) "$AGENTBOX" "$@" ;;
    container) as_user 1000 1000 "$USER_AGENTBOX" "$@" ;;
  esac
}

# make_project_in TOPOLOGY NAME: the directory of a project that belongs to that user, and enters it.
make_project_in() {
  local owner=0
  [ "$1" = sidecar ] || owner=1000
  local directory=$USERS/projects-1000/$1-$2
  install -d -o "$owner" -g "$owner" "$directory"
  cd "$directory" || return
  PROJECT=$directory
}

# firewalled TOPOLOGY [OPTION…] -- COMMAND…: a command in a firewalled box of that topology.
firewalled() {
  local topology=$1 user_options=()
  shift
  [ "$topology" = sidecar ] || user_options=(--agents "claude codex" --ca-file "$USERS/ca.pem")
  AGENTBOX_FIREWALL=${AGENTBOX_FIREWALL-1} in_topology "$topology" run "${user_options[@]}" --network "$LAB_NETWORK" --dns "$LAB_DNS" "$@"
}

# home_in TOPOLOGY: HOME of that user.
home_in() {
  [ "$1" = sidecar ] && echo "$HOME" || echo "$USERS/home-1000"
}

# log_in TOPOLOGY: the decision log of the newest session of the project in this directory.
log_in() {
  local sessions
  sessions=$(home_in "$1")/.agentbox/sessions
  jq --raw-output --arg project "$PWD" --arg sessions "$sessions" 'select(.project == $project) | "\($sessions)/\(.id)/decisions.jsonl"' "$sessions"/*/session.json | tail -1
}

# Calls the lab's control server: lab GET /questions, lab POST /dns JSON.
lab() {
  curl --silent --show-error --fail --unix-socket "$LAB_SOCKET" -X "$1" ${3+--data "$3"} "http://lab$2"
}

# Containers of the boxes of a project.
containers_of() {
  docker ps --all --quiet --filter "label=agentbox.project=${1:-$PROJECT}"
}

# The container in which the agent of a project's box runs; a sidecar has another one beside it.
agent_of() {
  docker ps --all --format '{{.ID}} {{.Label "agentbox.role"}}' --filter "label=agentbox.project=${1:-$PROJECT}" | awk '$2 != "holder" { print $1 }'
}

# The container of a project's box that has the namespace, its rules and its published ports.
holder_of() {
  docker ps --all --format '{{.ID}} {{.Label "agentbox.role"}}' --filter "label=agentbox.project=${1:-$PROJECT}" | awk '$2 != "agent" { print $1 }'
}

# Sessions of a project that are written down; another run of these tests may have its own.
sessions_of() {
  # One that goes meanwhile is no longer there.
  jq --raw-output --arg project "${1:-$PROJECT}" 'select(.project == $project and .ended == null).id' "$HOME"/.agentbox/sessions/*/session.json 2>/dev/null || true
}

# True when neither a container nor a session of the project is left.
is_cleared() {
  [ -z "$(containers_of "$@")$(sessions_of "$@")" ]
}

# Waits until a command succeeds, 15 s at most.
eventually() {
  local left=150
  until "$@"; do
    [ $((left -= 1)) -gt 0 ] || { echo "never came true: $*" >&2; return 1; }
    sleep 0.1
  done
}

# Waits until the project has a box whose agent has written FILE into the project.
file_appears() {
  eventually test -e "$1"
}

# Ends what a set-up left running; bats would wait for it for ever.
end_background() {
  local pid
  for pid in $(jobs -p); do kill "$pid" 2>/dev/null || true; done
}

assert_equal() {
  [ "$1" = "$2" ] || { printf 'expected: %s\n     got: %s\n' "$2" "$1" >&2; return 1; }
}

assert_contains() {
  case $1 in *"$2"*) ;; *) printf 'expected to hold: %s\n             got: %s\n' "$2" "$1" >&2; return 1 ;; esac
}

refute_contains() {
  case $1 in *"$2"*) printf 'expected not to hold: %s\n                 got: %s\n' "$2" "$1" >&2; return 1 ;; esac
}

# One answer of a box that tried many things: answer FILE NAME, where the lines of FILE are NAME<tab>TEXT.
answer() {
  local line
  line=$(grep -m1 -P "^\Q$2\E\t" "$1") || { echo "nothing about \"$2\" in:" >&2; cat "$1" >&2; return 1; }
  printf '%s' "${line#*$'\t'}"
}
