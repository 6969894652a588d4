# The main rows again on Podman, as root, in a lab of Podman's own.
load helpers

setup_file() {
  command -v podman >/dev/null || skip "podman is not installed"
  [ "$(id -u)" = 0 ] || skip "the lab needs podman as root"
  # A host that is a container itself may not grant the limits that podman asks for.
  export CONTAINERS_CONF=$BATS_FILE_TMPDIR/containers.conf
  # crun, its other runtime, refuses hosts that mix both versions of control groups.
  # Its older networks (CNI), which it goes on with where it once used them, have no IPv6.
  printf '[containers]\ndefault_ulimits = ["nofile=8192:8192", "nproc=4096:4096"]\n[network]\nnetwork_backend = "netavark"\n[engine]\nruntime = "runc"\n' >"$CONTAINERS_CONF"
  # An image without agents is half as large, and has to cross from one engine to the other.
  HOME=$(dirname "$HOME")/home-podman
  mkdir -p "$HOME/.agentbox"
  jq '.agents = []' "$(dirname "$HOME")/home/.agentbox/image.json" >"$HOME/.agentbox/image.json"
  make_project "$BATS_FILE_TMPDIR/project"
  export POD_IMAGE
  POD_IMAGE=$(AGENTBOX_LOG=json AGENTBOX_FIREWALL=0 "$AGENTBOX" run --engine docker -- true 2>&1 </dev/null | jq -r 'select(.event == "done" and .step == "image").detail' | cut -d, -f1)
  if ! podman image exists "localhost/$POD_IMAGE"; then
    podman images --quiet --filter "label=agentbox.home=$HOME/.agentbox" | xargs -r podman rmi --force >/dev/null || true
    docker save "$POD_IMAGE" | podman load --quiet >/dev/null
  fi

  local lab=$BATS_FILE_TMPDIR/lab.json
  "$NODE" "$ROOT/test/image/hold-lab.ts" --engine podman --image "localhost/$POD_IMAGE" --state "$(dirname "$LAB_SSH_KEY")" --for "$BATS_ROOT_PID" --out "$lab" >"$BATS_FILE_TMPDIR/lab.log" 2>&1 3>&- &
  eventually test -e "$lab"
  LAB_NETWORK=$(jq -r .network "$lab")
  LAB_DNS=$(jq -r .dns "$lab")
  LAB_DNS6=$(jq -r .dns6 "$lab")

  cp "$ROOT"/test/fixtures/{reach.mjs,attacks.py,keeper-attacks.py,state.sh} .
  pod_off -- node reach.mjs "${REFUSED[@]}" "${REACHED[@]}" >off.json 2>off.log </dev/null
  pod -- sh -c 'node reach.mjs --in-turn "$@" >on.json; curl -sS https://github.com/ >curled; python3 attacks.py >attacks; python3 keeper-attacks.py >keeper-attacks; sh state.sh >state; mkdir made; exit 37' sh "${REFUSED[@]}" "${REACHED[@]}" </dev/null >output 2>on.log && CODE=0 || CODE=$?
  echo "$CODE" >code
}

teardown_file() {
  remove_volumes_of_project
  end_background
  wait
}

setup() { cd "$BATS_FILE_TMPDIR/project"; }

REACHED=(tls:140.82.112.3:443:github.com 'tls:[2606:50c0:8000::3]:443:github.com' tcp:140.82.121.9:22)
REFUSED=(tls:93.184.220.34:443:example.com 'tls:[2606:2800:220:3::34]:443' tcp:140.82.112.3:8443 udp:8.8.8.8:53 'udp:[2001:4860:4860::8888]:53' udp:140.82.112.3:443 tcp:1.1.1.1:853 http:169.254.169.254:80 http:192.168.1.1:80)

pod() { AGENTBOX_FIREWALL=1 "$AGENTBOX" run --engine podman --network "$LAB_NETWORK" --dns "$LAB_DNS" "$@"; }
pod_off() { AGENTBOX_FIREWALL=0 "$AGENTBOX" run --engine podman --network "$LAB_NETWORK" --dns "$LAB_DNS" "$@"; }

remove_volumes_of_project() {
  podman volume ls --quiet --filter "label=agentbox.project=$BATS_FILE_TMPDIR/project" | xargs -r podman volume rm >/dev/null
}

@test "podman, case 13: allowed names are reached over IPv4 and IPv6, TLS verified" {
  assert_equal "$(jq -c --args '[.[] | select(.target as $t | $ARGS.positional | index($t))] | map(.outcome) | unique' "${REACHED[@]}" <on.json)" '["connected"]'
  assert_contains "$(cat curled)" '"sni":"github.com"'
}

@test "podman, case 15: everything else is refused at once, and reached without the firewall" {
  assert_equal "$(jq -c 'map(.outcome) | unique' off.json)" '["connected"]'
  assert_equal "$(jq -c --args '[.[] | select(.target as $t | $ARGS.positional | index($t))] | map(.outcome) | unique' "${REFUSED[@]}" <on.json)" '["ECONNREFUSED","EPERM","ERR_SSL_TLSV1_ALERT_ACCESS_DENIED","blocked-by-allowlist"]'
  assert_equal "$(jq --args '[.[] | select(.target as $t | $ARGS.positional | index($t))] | map(select(.ms >= 100)) | length' "${REFUSED[@]}" <on.json)" 0
}

@test "podman, case 23: every attack of the fixture is refused, and the agent has no capability" {
  [ "$(wc -l <attacks)" -gt 40 ]
  # Init is as powerless as the agent, which may do with it what it likes.
  assert_equal "$(cut -f1,2 attacks | grep -v refused)" $'trace init\tdone\nread init\'s memory\tdone\nsignal init\tdone'
  assert_equal "$(answer state capable)" none
  assert_equal "$(answer state owners)" 0
  assert_equal "$(cut -f2 keeper-attacks | sort -u)" $'absent\nrefused'
  assert_equal "$(grep -c 'CapBnd:0000000000000000' state)" 4
  assert_equal "$(grep -c 'CapEff:0000000000000000' state)" 4
  assert_equal "$(grep -c 'NoNewPrivs:1' state)" 4
  assert_equal "$(answer state nonblocking)" none
}

@test "podman, case 32: exit code and output are the command's, and stdin reaches it" {
  assert_equal "$(cat code)" 37
  assert_equal "$(cat output)" ""
  run -0 --separate-stderr pod -- cat <<<through
  assert_equal "$output" through
}

@test "podman, case 34: what a box makes belongs to the user" {
  assert_equal "$(stat -c %u:%g made on.json)" $'0:0\n0:0'
}

@test "podman, case 28: the protected paths are read-only" {
  make_project "$BATS_TEST_TMPDIR/repository"
  git init -q
  run pod -- sh -c 'echo x >>.git/config; echo x >.git/hooks/h; mv .git g; mkdir .vscode/x; touch ok' </dev/null
  assert_equal "$(grep -cE 'Read-only file system|Device or resource busy' <<<"$output")" 4
  assert_equal "$(ls -A | tr '\n' ' ')" ".git ok "
}

@test "podman, case 36: nothing is left after SIGTERM, and after SIGKILL with the next start" {
  local signal code
  for signal in TERM KILL; do
    rm -f up
    (AGENTBOX_FIREWALL=1 exec "$AGENTBOX" run --engine podman --network "$LAB_NETWORK" --dns "$LAB_DNS" -- sh -c 'touch up; exec sleep 60' </dev/null >log 2>&1 3>&-) &
    file_appears up
    kill -s "$signal" $!
    code=0
    wait $! || code=$?
    [ "$signal" = KILL ] || assert_equal "$code" 143
  done
  run -0 pod -- true </dev/null
  assert_equal "$(podman ps --all --quiet --filter "label=agentbox.project=$PWD")" ""
  assert_equal "$(sessions_of "$PWD")" ""
}
