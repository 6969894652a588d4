# What an agent would have to change so that the next box, or its own, lets more through (cases 24, 25): tried by
# an agent with the user's ids and by one with uid 0, each in a box that goes on being asked.
load helpers
load orders

setup_file() {
  lab POST /reset '{}'
  local topology
  for topology in container sidecar; do
    make_project_in "$topology" protected
    printf '[network]\n' | write_config
    open_box "$topology"
    echo "$BOX" >"$BATS_FILE_TMPDIR/$topology.pid"
    order "$(cat <<'TRY'
cat >try.sh <<'IN'
# Prints a line for each attempt: name, tab, done or refused.
try() { name=$1; shift; if ( "$@" ) >/dev/null 2>&1; then printf '%s\tdone\n' "$name"; else printf '%s\trefused\n' "$name"; fi; }
write() { echo x >>"$1"; }
replace() { echo x >/tmp/new && mv -f /tmp/new "$1"; }
for path in /run/agentbox/policy.json /run/agentbox/policy.md /run/agentbox/box.json /run/agentbox/resolv.conf /etc/resolv.conf /etc/hosts /etc/claude-code/CLAUDE.md .agentbox/config.toml "$PWD/mine"; do
  try "write $path" write "$path"
  try "replace $path" replace "$path"
  try "unlink $path" rm -f "$path"
done
try "plant /run/agentbox/x" write /run/agentbox/x
try "plant .agentbox/hosts" write .agentbox/hosts
try "rename .agentbox" mv .agentbox moved
try "enter the keeper's directory" cd /var/lib/agentbox-keeper
try "list the sockets" ls /var/lib/agentbox-keeper/run
try "read the log" cat /var/lib/agentbox-keeper/log/decisions.jsonl
try "write the log" write /var/lib/agentbox-keeper/log/decisions.jsonl
try "rename the keeper's directory" mv /var/lib/agentbox-keeper /var/lib/x
try "cover the keeper's directory" chmod 777 /var/lib/agentbox-keeper
try "ask the control socket" sh -c 'echo "{\"op\":\"status\"}" | timeout 5 env -i /usr/local/bin/node /usr/local/lib/agentbox/control.mjs | grep -q "\"ok\":true"'
for socket in control proxy; do
  try "connect to $socket" node -e "require('net').connect('/var/lib/agentbox-keeper/run/$socket.sock').on('connect',()=>process.exit(0)).on('error',()=>process.exit(1))"
done
# What has an abstract or inherited socket would be in this list.
try "see a socket of the keeper" grep -q agentbox /proc/net/unix
try "become the keeper" setpriv --reuid 64991 --regid 64990 --clear-groups true
try "become the proxy" setpriv --reuid 64990 --regid 64990 --clear-groups true
try "make a file of one's own" write own
IN
sh try.sh >tried
TRY
)" >/dev/null
  done
}

teardown_file() {
  local topology
  for topology in container sidecar; do touch "$USERS/projects-1000/$topology-protected/over"; done
  end_background
}

enter() {
  PROJECT=$USERS/projects-1000/$1-protected
  cd "$PROJECT" || return
}

attempts=(
  'plant /run/agentbox/x' 'plant .agentbox/hosts' 'rename .agentbox' "enter the keeper's directory" 'list the sockets' 'read the log' 'write the log'
  "rename the keeper's directory" "cover the keeper's directory" 'ask the control socket' 'connect to control' 'connect to proxy' 'become the keeper' 'become the proxy'
)
for path in /run/agentbox/{policy.json,policy.md,box.json,resolv.conf} /etc/resolv.conf /etc/hosts /etc/claude-code/CLAUDE.md .agentbox/config.toml; do
  attempts+=("write $path" "replace $path" "unlink $path")
done

is_refused() {
  enter "$1"
  assert_equal "$(answer tried "$2")" refused
}
for topology in container sidecar; do
  for attempt in "${attempts[@]}"; do
    bats_test_function --description "case 24, 25 ($topology): an agent cannot $attempt" -- is_refused "$topology" "$attempt"
  done
done

@test "case 25: the control: the same attempts succeed on the agent's own files, and for who may ask the keeper" {
  local topology
  for topology in container sidecar; do
    enter "$topology"
    assert_equal "$(answer tried "make a file of one's own")" "done"
    local step
    for step in write replace unlink; do assert_equal "$(answer tried "$step $PROJECT/mine")" "done"; done
    run -0 docker exec --interactive --user 64991:64990 "$(holder_of)" env -i /usr/local/bin/node /usr/local/lib/agentbox/control.mjs <<<'{"op":"status"}'
    assert_contains "$output" '"ok":true'
  done
}

@test "case 25: after all of that the files are as they were, the box judges as before, and so does the next one" {
  local topology
  for topology in container sidecar; do
    enter "$topology"
    assert_equal "$(cat .agentbox/config.toml)" "[network]"
    assert_equal "$(order 'jq -r .mode /run/agentbox/policy.json; cat /etc/resolv.conf; curl --noproxy \* -sS https://example.com/ 2>&1')" $'allowlist\nnameserver 127.0.0.1\ncurl: (6) Could not resolve host: example.com\nexit 6'
    run -6 configured "$topology" run -- sh -c 'curl --noproxy \* -sS -o /dev/null https://github.com/ && curl --noproxy \* -sS https://example.com/'
  done
}

@test "case 40: the agents' own instructions say what is reachable and how a refusal looks" {
  local topology text
  for topology in container sidecar; do
    enter "$topology"
    text=$(order 'cat /etc/claude-code/CLAUDE.md')
    assert_contains "$text" "$(order 'cat /run/agentbox/policy.md' | head -3)"
    assert_contains "$text" "agentbox policy allow"
  done
}
