# A box that stays up and does what a test orders, so that many tests share one start.

# configured TOPOLOGY VERB [OPTION…]: agentbox with the lab as its internet, where only files decide about the firewall.
configured() {
  local topology=$1 verb=$2
  shift 2
  unconnected "$topology" "$verb" --network "$LAB_NETWORK" --dns "$LAB_DNS" "$@"
}

# The same without the lab, for boxes that get no network.
unconnected() {
  local topology=$1 verb=$2 user_options=()
  shift 2
  [ "$topology" = sidecar ] || user_options=(--agents "claude codex" --ca-file "$USERS/ca.pem")
  in_topology "$topology" "$verb" "${user_options[@]}" "$@"
}

# Writes the configuration of the project from stdin.
write_config() {
  mkdir -p .agentbox
  cat >.agentbox/config.toml
}

# trusted_config TOPOLOGY: the same, and its owner agrees to it.
trusted_config() {
  write_config
  in_topology "$1" policy trust >/dev/null
}

# open_box TOPOLOGY [OPTION…]: starts a box in this project that waits for orders, and waits until it does.
open_box() {
  local topology=$1
  shift
  rm -rf orders over up
  mkdir orders
  cat >serve.sh <<'SERVE'
n=1
touch up
until [ -e over ]; do
  if [ -e "orders/$n" ]; then sh "orders/$n" >"orders/$n.part" 2>&1; echo "exit $?" >>"orders/$n.part"; mv "orders/$n.part" "orders/$n.out"; n=$((n + 1)); else sleep 0.05; fi
done
exit "$(cat over)"
SERVE
  chmod -R a+rwX orders serve.sh .
  configured "$topology" run "$@" -- sh serve.sh >box.out 2>box.log </dev/null 3>&- &
  BOX=$!
  file_appears up || { cat box.log >&2; return 1; }
}

# order COMMAND: runs it in the box of this project and prints what it said and, as its last line, its exit code.
order() {
  local number
  number=$(($(find orders -name '*[0-9]' | wc -l) + 1))
  echo "$1" >"orders/$number.new"
  chmod a+r "orders/$number.new"
  mv "orders/$number.new" "orders/$number"
  eventually test -e "orders/$number.out"
  cat "orders/$number.out"
}

# close_box [CODE]: the command of the box ends with that code.
close_box() {
  echo "${1-0}" >over.new
  chmod a+r over.new
  mv over.new over
  wait "$BOX" || true
}

# The id of the newest session of this project, running or ended.
session_id() {
  jq --raw-output --arg project "$PROJECT" 'select(.project == $project).id' "$(home_in "$1")"/.agentbox/sessions/*/session.json 2>/dev/null | sort | tail -1
}

# decisions TOPOLOGY FILTER: what the newest session of this project wrote down, through jq.
decisions() {
  jq --raw-output "$2" "$(home_in "$1")/.agentbox/sessions/$(session_id "$1")/log/decisions.jsonl"
}

# logged TOPOLOGY FILTER: waits until the log has a record for which the filter is true.
logged() {
  eventually is_logged "$@" || { decisions "$1" . | tail -40 >&2; return 1; }
}
is_logged() { [ -n "$(decisions "$1" "select($2)" 2>/dev/null)" ]; }
