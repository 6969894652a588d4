# Starts that must fail: each says why, with the exit code that belongs to it, and no agent runs.
load helpers

# Specifications that the command line hands to containers, taken from real boxes for containers made by hand:
# of a box that is one container, of a holder, and of the agent's container that joins one.
setup_file() {
  local topology boxes=()
  for topology in container sidecar; do
    make_project_in "$topology" faults
    cp "$ROOT/test/fixtures/reach.mjs" .
    firewalled "$topology" -- sh -c 'echo the agent runs >&2; [ -n "$BY_HAND" ] || cat /run/agentbox/box.json; test -e read || { touch up; timeout 30 sh -c "until [ -e read ]; do sleep 0.1; done"; }' >whole.json 2>log </dev/null 3>&- &
    boxes+=($!)
  done
  for topology in container sidecar; do
    make_project_in "$topology" faults
    file_appears up
    docker exec "$(holder_of)" cat /run/agentbox/box.json >holder.json
    docker exec --user 64990:64990 "$(holder_of)" cat /var/lib/agentbox-keeper/log/proxy-secrets.json >secrets.json
    touch read
  done
  wait "${boxes[@]}"
  for topology in container sidecar; do
    make_project_in "$topology" faults
    # Those mount the project and nothing in it.
    jq 'del(.mounts) | .command = ["sh", "-c", "echo the agent runs >&2"]' whole.json >spec.json
    jq 'del(.mounts)' holder.json >holder-spec.json
    echo "nameserver 127.0.0.1" >resolv.conf
    mkdir -m 777 keeper-log
    install -m 644 secrets.json keeper-log/proxy-secrets.json
  done
  # Products with an allowlist of their own.
  local name
  for name in empty literal malformed; do
    mkdir "$BATS_FILE_TMPDIR/$name"
    cp -a "$ROOT"/{agentbox,build,allowlists,Dockerfile,scripts,package.json} "$BATS_FILE_TMPDIR/$name"
    ln -s "$ROOT/node_modules" "$BATS_FILE_TMPDIR/$name/node_modules"
  done
  printf 'ALLOWED_SERVICES=()\nCRITICAL_SERVICES=()\n' >"$BATS_FILE_TMPDIR/empty/allowlists/services.sh"
  printf 'ALLOWED_SERVICES=(\n  "github.com"\n  "$(touch planted)"\n  "*.com"\n)\nCRITICAL_SERVICES=("github.com")\n' >"$BATS_FILE_TMPDIR/malformed/allowlists/services.sh"
}

setup() { make_project; }
teardown() {
  end_background
  [ -z "${MADE-}" ] || docker rm --force $MADE >/dev/null
}

ALL_RIGHTS=(NET_ADMIN NET_RAW SETUID SETGID SETPCAP KILL)

# enter ROLE: the project from which the containers of that role are made by hand; SPEC is their specification.
enter() {
  ROLE=$1
  case $ROLE in
    box) cd "$USERS/projects-1000/container-faults"; SPEC=$PWD/spec.json ;;
    holder) cd "$USERS/projects-1000/sidecar-faults"; SPEC=$PWD/holder-spec.json ;;
    agent) cd "$USERS/projects-1000/sidecar-faults"; SPEC=$PWD/spec.json ;;
  esac
}

# by_hand [DOCKER-OPTION…]: a container of the role, started without the command line. With VERB=create it is only made.
by_hand() {
  local verb=(${VERB:-run --rm})
  local rights=("${RIGHTS[@]:-${ALL_RIGHTS[@]}}") project=() surroundings=()
  [ "$ROLE" = holder ] || project=(--volume "$PWD:$PWD" --tmpfs /home/agent)
  case $ROLE in
    agent) rights=() ;;
    *) surroundings=(--network "$LAB_NETWORK" --dns "$LAB_DNS" --tmpfs /var/lib/agentbox-keeper/run:mode=1777 --volume "$PWD/keeper-log:/var/lib/agentbox-keeper/log") ;;
  esac
  timeout 60 docker "${verb[@]}" --init --cap-drop ALL "${rights[@]/#/--cap-add=}" --security-opt no-new-privileges --read-only --tmpfs /run --tmpfs /tmp \
    --volume "$SPEC:/run/agentbox/box.json:ro" --volume "$PWD/resolv.conf:/etc/resolv.conf:ro" "${surroundings[@]}" "${project[@]}" --env AGENTBOX_FIREWALL=1 "$@" "$IMAGE"
}

fails_with() {
  local code=$1 words=$2
  shift 2
  run "-$code" --separate-stderr by_hand "$@"
  assert_equal "$output" ""
  assert_contains "$stderr" "$words"
  refute_contains "$stderr" "the agent runs"
  refute_contains "$stderr" "verified"
}

says_verified() { docker logs "$1" 2>&1 | grep -q verified; }

# A holder that serves; HOLDER is its container.
open_holder() {
  enter holder
  HOLDER=$(VERB="run --detach" by_hand)
  MADE="${MADE-} $HOLDER"
  eventually says_verified "$HOLDER"
}

@test "the control: a box made by hand with all rights and the specification of a real one starts" {
  enter box
  run -0 --separate-stderr by_hand
  assert_contains "$stderr" "verified"
  assert_contains "$stderr" "the agent runs"
}

@test "a box without the secrets of its proxy does not start, and its proxy left word why" {
  enter box
  mv keeper-log/proxy-secrets.json kept.json
  fails_with 70 "see keeper.log and proxy.log of the session"
  mv kept.json keeper-log/proxy-secrets.json
  assert_contains "$(cat keeper-log/proxy.log)" "proxy-secrets.json: this file cannot be read (ENOENT"
  rm -f keeper-log/proxy.log
}

@test "the control: a holder made by hand starts, and an agent's container that joins it" {
  open_holder
  enter agent
  run -0 --separate-stderr by_hand --network "container:$HOLDER"
  assert_contains "$stderr" "verified"
  assert_contains "$stderr" "the agent runs"
}

@test "case 6: a container that is started again has the policy in force before its agent runs again" {
  enter box
  jq '.command = ["node", "reach.mjs", "tls:github.com:443", "tls:93.184.220.34:443", "tls:example.com:443"]' spec.json >again.json
  local round
  MADE=$(VERB=create SPEC=$PWD/again.json by_hand)
  for round in 1 2; do
    run -0 --separate-stderr docker start --attach "$MADE"
    assert_contains "$stderr" "verified"
    assert_equal "$(jq -c 'map(.outcome)' <<<"$output")" '["connected","ERR_SSL_TLSV1_ALERT_ACCESS_DENIED","ENOTFOUND"]'
  done
}

@test "case 26a: an agent's container in a namespace without walls is refused by its gate with 70, and no agent runs" {
  enter agent
  fails_with 70 "gate: the canary 198.51.100.1 port 9 can be reached" --network "$LAB_NETWORK"
  # Where there is nothing at all, no resolver of a box answers either.
  fails_with 70 "agentbox: error: gate:" --network none
}

@test "case 26a: a holder that is started again leaves an agent that is started again behind walls, and one that runs on without a network" {
  open_holder
  enter agent
  jq '.command = ["sh", "-c", "while :; do node reach.mjs tls:140.82.112.3:443:github.com tls:93.184.220.34:443:example.com udp:8.8.8.8:53; sleep 0.2; done"]' spec.json >loop.json
  local agent before
  agent=$(VERB="run --detach" SPEC=$PWD/loop.json by_hand --network "container:$HOLDER")
  MADE="$MADE $agent"
  reports() { [ "$(outcomes "$agent" | wc -l)" -gt "$1" ]; }
  eventually reports 2
  assert_equal "$(outcomes "$agent" | sort -u)" '["connected","ERR_SSL_TLSV1_ALERT_ACCESS_DENIED","EPERM"]'
  docker kill "$HOLDER" >/dev/null
  before=$(outcomes "$agent" | wc -l)
  docker start "$HOLDER" >/dev/null
  eventually reports $((before + 5))
  # But for a round that was under way.
  assert_equal "$(outcomes "$agent" | tail -n +$((before + 2)) | sort -u)" '["ENETUNREACH","ENETUNREACH","ENETUNREACH"]'
  docker kill "$agent" >/dev/null
  before=$(outcomes "$agent" | wc -l)
  docker start "$agent" >/dev/null
  eventually reports $((before + 2))
  assert_equal "$(outcomes "$agent" | tail -n +$((before + 1)) | sort -u)" '["connected","ERR_SSL_TLSV1_ALERT_ACCESS_DENIED","EPERM"]'
}
outcomes() { docker logs "$1" 2>/dev/null | jq -c 'map(.outcome)'; }

@test "case 26a: a sidecar whose holder is started again by somebody else ends at once with 70, and nothing was open" {
  make_project_in sidecar restarted
  cp "$ROOT/test/fixtures/reach.mjs" .
  firewalled sidecar -- sh -c 'touch up; while :; do node reach.mjs tls:140.82.112.3:443:github.com tls:93.184.220.34:443; sleep 0.1; done' >tried 2>log </dev/null 3>&- &
  local box=$! code=0
  file_appears up
  eventually test -s tried
  docker restart --time 0 "$(holder_of)" >/dev/null
  wait "$box" || code=$?
  assert_equal "$code" 70
  assert_contains "$(jq -r '.[0].outcome' tried)" connected
  assert_equal "$(jq -r '.[1].outcome' tried | grep -c connected)" 0
  assert_contains "$(cat log)" "the firewall container"
  eventually is_cleared
}

@test "case 4: a box that lacks a mount of its specification is refused with 70, and no agent runs" {
  enter box
  SPEC=$PWD/whole.json fails_with 70 '/.vscode" was replaced between planning and start: in the box it is not mounted'
}

@test "case 4: an agent's container that lacks a mount of its specification is refused with 70, behind walls too" {
  open_holder
  enter agent
  SPEC=$PWD/whole.json fails_with 70 '/.vscode" was replaced between planning and start: in the box it is not mounted' --network "container:$HOLDER"
}

without_right() {
  enter "$1"
  local right RIGHTS=()
  for right in "${ALL_RIGHTS[@]}"; do [ "$right" = "$2" ] || RIGHTS+=("$right"); done
  fails_with 77 "the engine withholds $2"
}
for role in box holder; do
  for right in "${ALL_RIGHTS[@]}"; do
    bats_test_function --description "case 4: an engine that withholds $right of a $role is told with 77, and no agent runs" -- without_right "$role" "$right"
  done
done

on_and_off() {
  enter "$1"
  fails_with 70 "AGENTBOX_FIREWALL is 0, but the box specification says firewall on" --env AGENTBOX_FIREWALL=0
}
other_version() {
  enter "$1"
  jq '.version = 1' "$SPEC" >other.json
  SPEC=$PWD/other.json fails_with 78 "run agentbox --rebuild"
  jq '.surprise = true' "$SPEC" >other.json
  SPEC=$PWD/other.json fails_with 78 "run agentbox --rebuild"
}
for role in box holder agent; do
  bats_test_function --description "case 4 ($role): a start with the firewall on in one place and off in the other is refused with 70" -- on_and_off "$role"
  bats_test_function --description "case 8 ($role): a specification of another version is refused with 78" -- other_version "$role"
done

foreign_network() {
  enter "$1"
  local other before
  other=$(docker run --detach --init --network "$LAB_NETWORK" --cap-add NET_ADMIN --volume "$ROOT/test/fixtures/listen.mjs:/listen.mjs:ro" --entrypoint node "$IMAGE" /listen.mjs 3000)
  MADE=$other
  eventually sh -c 'docker exec "$0" curl -sS http://127.0.0.1:3000/ >/dev/null 2>&1' "$other"
  before=$(docker exec "$other" iptables-save -t filter | grep -v '^#')
  run -70 --separate-stderr docker run --rm --network "container:$other" --cap-drop ALL "${ALL_RIGHTS[@]/#/--cap-add=}" --volume "$SPEC:/run/agentbox/box.json:ro" --env AGENTBOX_FIREWALL=1 "$IMAGE"
  assert_equal "$(docker exec "$other" iptables-save -t filter | grep -v '^#')" "$before"
  assert_contains "$stderr" "agentbox: error:"
  refute_contains "$stderr" "the agent runs"
}
for role in box holder; do
  bats_test_function --description "case 4: a network that belongs to another container is refused to a $role with 70 and left as it is" -- foreign_network "$role"
done

@test "case 4: an engine that does not answer is 69, with the remedy" {
  run -69 env DOCKER_HOST=unix:///nonexistent/docker.sock AGENTBOX_FIREWALL=1 "$AGENTBOX" run --engine docker -- true
  assert_contains "$output" "fix:"
  mkdir "$BATS_TEST_TMPDIR/bin"
  ln -s "$(command -v dirname)" "$(command -v readlink)" "$BATS_TEST_TMPDIR/bin"
  run -69 env PATH="$BATS_TEST_TMPDIR/bin" "$AGENTBOX" run -- true
  assert_contains "$output" "docker"
  assert_contains "$output" "podman"
}

@test "an unreadable AGENTBOX_FIREWALL is refused with 64: it may be meant as on" {
  run -64 env AGENTBOX_FIREWALL=yes "$AGENTBOX" run -- true
  assert_contains "$output" 'AGENTBOX_FIREWALL is "yes"'
}

@test "case 8: a malformed allowlist is refused with 78 and every bad line, and nothing in it is executed" {
  run -78 env AGENTBOX_FIREWALL=1 "$BATS_FILE_TMPDIR/malformed/agentbox" run --network "$LAB_NETWORK" -- true
  assert_contains "$output" "allowlists/services.sh:3"
  assert_equal "$(containers_of "$PWD")" ""
  [ ! -e planted ]
}

@test "case 8: an empty allowlist is a box without any network, which starts" {
  AGENTBOX_FIREWALL=1 run -0 --separate-stderr "$BATS_FILE_TMPDIR/empty/agentbox" run -- sh -c 'ls /sys/class/net; curl -sS https://1.1.1.1/ 2>&1; getent hosts github.com; echo started' </dev/null
  assert_equal "$(head -1 <<<"$output")" lo
  assert_contains "$output" "Failed to connect to 1.1.1.1"
  assert_equal "$(tail -1 <<<"$output")" started
  assert_contains "$stderr" "the allowlist is empty: this box has no network at all"
}

@test "case 16: a listed private address opens exactly that port there; a changed allowlist makes a new image by itself" {
  local sibling address bridge
  sibling=$(docker run --detach --init --network "$LAB_NETWORK" --volume "$ROOT/test/fixtures/listen.mjs:/listen.mjs:ro" --entrypoint node "$IMAGE" /listen.mjs 3000 4000)
  address=$(docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$sibling")
  bridge=$(docker network inspect --format '{{(index .IPAM.Config 0).Gateway}}' "$LAB_NETWORK")
  printf 'ALLOWED_SERVICES=(\n  "github.com"\n  "%s:3000"\n)\nCRITICAL_SERVICES=("github.com")\n' "$address" >"$BATS_FILE_TMPDIR/literal/allowlists/services.sh"
  cp "$ROOT/test/fixtures/reach.mjs" .
  AGENTBOX_FIREWALL=1 run -0 --separate-stderr "$BATS_FILE_TMPDIR/literal/agentbox" run --network "$LAB_NETWORK" --dns "$LAB_DNS" --add-host "db:$address" -- \
    sh -c 'node reach.mjs "tcp:$0:3000" "tcp:$0:4000" "tcp:$1:3000" tls:93.184.216.7:443; curl -sS http://db:3000/' "$address" "$bridge" </dev/null
  docker rm --force "$sibling" >/dev/null
  assert_equal "$(head -1 <<<"$output" | jq -c 'map(.outcome)')" '["connected","ECONNREFUSED","ECONNREFUSED","ERR_SSL_TLSV1_ALERT_ACCESS_DENIED"]'
  assert_equal "$(tail -1 <<<"$output")" listening
  assert_contains "$stderr" ", built ("
}
