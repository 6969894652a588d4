# Once for all files: the image, a lab that plays the internet, and the surroundings of the command line under test.

setup_suite() {
  local root node prepared lab="$BATS_SUITE_TMPDIR/lab.json"
  root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  node=$root/node_modules/node/bin/node
  [ -x "$node" ] || node=node
  prepared=$("$node" "$root/test/image/test-image.ts")

  # Ends by itself when bats is killed.
  "$node" "$root/test/image/hold-lab.ts" --image "$(jq -r .image <<<"$prepared")" --for "$BATS_ROOT_PID" --out "$lab" >"$BATS_SUITE_TMPDIR/lab.log" 2>&1 3>&- &
  echo $! >"$BATS_SUITE_TMPDIR/lab.pid"
  local left=300
  until [ -e "$lab" ]; do
    kill -0 "$(cat "$BATS_SUITE_TMPDIR/lab.pid")" && [ $((left -= 1)) -gt 0 ] || { cat "$BATS_SUITE_TMPDIR/lab.log" >&2; return 1; }
    sleep 0.1
  done

  # Nothing of the caller's own settings may steer the command line under test.
  local name
  for name in $(compgen -e AGENTBOX_); do unset "$name"; done
  export AGENTBOX=$root/agentbox NODE=$node ROOT=$root
  export IMAGE CA_FILE HOME LAB_NETWORK LAB_DNS LAB_DNS6 LAB_GATEWAY LAB_CONTAINER LAB_SOCKET LAB_SSH_KEY LAB_KNOWN_HOSTS
  IMAGE=$(jq -r .image <<<"$prepared")
  CA_FILE=$(jq -r .caFile <<<"$prepared")
  prepare_home "$(jq -r .home <<<"$prepared")"
  LAB_NETWORK=$(jq -r .network "$lab")
  LAB_DNS=$(jq -r .dns "$lab")
  LAB_DNS6=$(jq -r .dns6 "$lab")
  LAB_GATEWAY=$(jq -r .gateway "$lab")
  LAB_CONTAINER=$(jq -r .container "$lab")
  LAB_SOCKET=$(jq -r .socket "$lab")
  LAB_SSH_KEY=$(jq -r .sshKeyFile "$lab")
  LAB_KNOWN_HOSTS=$(jq -r .knownHostsFile "$lab")
  prepare_users
}

# Another run at the same time has a configuration and sessions of its own; the image and what was fetched serve both.
prepare_home() {
  HOME=$BATS_SUITE_TMPDIR/home
  mkdir -p "$HOME/.agentbox" "$1/.cache"
  cp "$1/.gitconfig" "$HOME"
  cp "$1/.agentbox/image.json" "$HOME/.agentbox"
  ln -s "$1/.cache" "$HOME/.cache"
}

# Other users need a home, and a product and certificates that they may read.
prepare_users() {
  export USERS USER_AGENTBOX=$AGENTBOX
  USERS=$(mktemp -d /tmp/agentbox-users-XXXXXX)
  chmod 755 "$USERS"
  install -m 644 "$CA_FILE" "$USERS/ca.pem"
  [ "$(id -u)" = 0 ] || return 0
  local id
  for id in 1000:1000 1001:1001 501:20; do
    install -d -m 700 -o "${id%:*}" -g "${id#*:}" "$USERS/home-${id%:*}" "$USERS/projects-${id%:*}"
  done
  setpriv --reuid 1001 --regid 1001 --clear-groups test -r "$AGENTBOX" && return
  mkdir -p "$USERS/product/node_modules"
  cp -a "$ROOT"/{agentbox,build,allowlists,Dockerfile,scripts,package.json} "$USERS/product"
  cp -aL "$ROOT/node_modules/node" "$USERS/product/node_modules/node"
  USER_AGENTBOX=$USERS/product/agentbox
}

teardown_suite() {
  remove_volumes docker
  # What tests had built; the image of all others belongs to the home it was made for.
  docker images --quiet --filter "label=agentbox.home=$HOME/.agentbox" | xargs --no-run-if-empty docker rmi --force >/dev/null || true
  local pid
  pid=$(cat "$BATS_SUITE_TMPDIR/lab.pid")
  kill "$pid" && wait "$pid" || true
  rm -rf "$USERS"
}

# The volumes of projects that lay in this run's own directories.
remove_volumes() {
  local name project
  "$1" volume ls --quiet --filter label=agentbox.project | while read -r name; do
    project=$("$1" volume inspect --format '{{index .Labels "agentbox.project"}}' "$name")
    case $project in "$BATS_RUN_TMPDIR"/* | "$USERS"/*) "$1" volume rm "$name" >/dev/null ;; esac
  done
}
