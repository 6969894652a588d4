# Starts that must fail: each says why, with the exit code that belongs to it, and no agent runs.
load helpers

setup_file() {
  make_project "$BATS_FILE_TMPDIR/project"
  # What the command line hands to a box, taken from a real one, for boxes made by hand.
  AGENTBOX_FIREWALL=1 "$AGENTBOX" run --network "$LAB_NETWORK" --dns "$LAB_DNS" -- sh -c 'echo the agent runs >&2; cat /run/agentbox/box.json' 2>/dev/null </dev/null >whole.json
  # Those mount the project and nothing in it.
  jq 'del(.mounts)' whole.json >spec.json
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

setup() { cd "$BATS_FILE_TMPDIR/project"; }

ALL_RIGHTS=(NET_ADMIN NET_RAW SETUID SETGID SETPCAP KILL)

# by_hand [DOCKER-OPTION…]: the image started without the command line; SPEC is its specification. With
# VERB=create it is only made.
by_hand() {
  local verb=(${VERB:-run --rm})
  local rights=("${RIGHTS[@]:-${ALL_RIGHTS[@]}}")
  docker "${verb[@]}" --init --network "$LAB_NETWORK" --dns "$LAB_DNS" --cap-drop ALL "${rights[@]/#/--cap-add=}" --security-opt no-new-privileges --read-only --tmpfs /run --tmpfs /tmp \
    --tmpfs /home/agent --volume "${SPEC:-$PWD/spec.json}:/run/agentbox/box.json:ro" --volume "$PWD:$PWD" --env AGENTBOX_FIREWALL=1 "$@" "$IMAGE"
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

@test "the control: made by hand with all rights and the specification of a real box, it starts" {
  run -0 --separate-stderr by_hand
  assert_contains "$stderr" "verified"
  assert_contains "$stderr" "the agent runs"
}

@test "case 6: a container that is started again has the policy in force before its agent runs again" {
  cp "$ROOT/test/fixtures/reach.mjs" .
  jq '.command = ["node", "reach.mjs", "tcp:github.com:443", "tcp:example.com:443"]' spec.json >again.json
  local container round
  container=$(VERB=create SPEC=$PWD/again.json by_hand)
  for round in 1 2; do
    run -0 --separate-stderr docker start --attach "$container"
    assert_contains "$stderr" "verified"
    assert_equal "$(jq -c 'map(.outcome)' <<<"$output")" '["connected","ECONNREFUSED"]'
  done
  docker rm "$container" >/dev/null
}

@test "case 4: a box that lacks a mount of its specification is refused with 70, and no agent runs" {
  SPEC=$PWD/whole.json fails_with 70 '/.vscode" was replaced between planning and start: in the box it is not mounted'
}

without_right() {
  local right RIGHTS=()
  for right in "${ALL_RIGHTS[@]}"; do [ "$right" = "$1" ] || RIGHTS+=("$right"); done
  fails_with 77 "the engine withholds $1"
}
for right in "${ALL_RIGHTS[@]}"; do
  bats_test_function --description "case 4: an engine that withholds $right is told with 77, and no agent runs" -- without_right "$right"
done

@test "case 4: a box with the firewall on in one place and off in the other is refused with 70" {
  fails_with 70 "AGENTBOX_FIREWALL is 0, but the box specification says firewall on" --env AGENTBOX_FIREWALL=0
}

@test "case 8: a specification of another version is refused with 78" {
  jq '.version = 2 | .surprise = true' spec.json >other.json
  SPEC=$PWD/other.json fails_with 78 "run agentbox --rebuild"
}

@test "case 4: a network that belongs to another container is refused with 70 and left as it is" {
  local other before
  other=$(docker run --detach --init --network "$LAB_NETWORK" --cap-add NET_ADMIN --volume "$ROOT/test/fixtures/listen.mjs:/listen.mjs:ro" --entrypoint node "$IMAGE" /listen.mjs 3000)
  eventually sh -c 'docker exec "$0" curl -sS http://127.0.0.1:3000/ >/dev/null 2>&1' "$other"
  before=$(docker exec "$other" iptables-save -t filter | grep -v '^#')
  run -70 --separate-stderr docker run --rm --network "container:$other" --cap-drop ALL "${ALL_RIGHTS[@]/#/--cap-add=}" --volume "$PWD/spec.json:/run/agentbox/box.json:ro" --env AGENTBOX_FIREWALL=1 "$IMAGE"
  assert_equal "$(docker exec "$other" iptables-save -t filter | grep -v '^#')" "$before"
  docker rm --force "$other" >/dev/null
  assert_contains "$stderr" "agentbox: error:"
  refute_contains "$stderr" "the agent runs"
}

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
    sh -c 'node reach.mjs "tcp:$0:3000" "tcp:$0:4000" "tcp:$1:3000" tcp:93.184.216.7:443; curl -sS http://db:3000/' "$address" "$bridge" </dev/null
  docker rm --force "$sibling" >/dev/null
  assert_equal "$(head -1 <<<"$output" | jq -c 'map(.outcome)')" '["connected","ECONNREFUSED","ECONNREFUSED","ECONNREFUSED"]'
  assert_equal "$(tail -1 <<<"$output")" listening
  assert_contains "$stderr" ", built ("
}
