# Who answers names in a box, and what a start does when names do not resolve or services do not answer.
load helpers

# The one start that takes long runs beside the other tests: its resolver never answers, whatever the lab does.
# So do two boxes, one of each topology, into which the first tests look.
setup_file() {
  make_project "$BATS_FILE_TMPDIR/unanswered"
  (AGENTBOX_FIREWALL=1 "$AGENTBOX" run --dns "$LAB_DNS" -- sh -c 'echo the agent runs' </dev/null >output 2>log && echo 0 >code || echo $? >code) 3>&- &
  local topology boxes=()
  for topology in container sidecar; do
    make_project_in "$topology" resolver
    firewalled "$topology" -- sh -c 'cat /etc/resolv.conf; getent ahostsv4 github.com; getent ahostsv6 github.com; touch up; timeout 30 sh -c "until [ -e seen ]; do sleep 0.1; done"; getent hosts gitlab.com >after' >answers 2>log </dev/null 3>&- &
    boxes+=($!)
  done
  for topology in container sidecar; do
    make_project_in "$topology" resolver
    file_appears up
    look_inside
    touch seen
  done
  wait "${boxes[@]}"
}
teardown_file() { end_background; }

# Asks Docker's resolver, as the ids that are named, for a container's name, which it knows by itself.
ask_engine() {
  docker exec --user "$1" "$(holder_of)" node -e 'const r = new (require("node:dns").promises.Resolver)({ timeout: 2000, tries: 1 }); r.setServers(["127.0.0.11"]); r.resolve4(process.argv[1]).then((found) => console.log(found.join()), (e) => console.log(e.code))' "$LAB_CONTAINER" 2>&1
}

# Keeps what the kernel of a box has, and what Docker's resolver says to whom.
look_inside() {
  local holder tool
  holder=$(holder_of)
  docker exec --user 0 "$holder" iptables-save -t nat >nat
  for tool in iptables-save ip6tables-save; do docker exec --user 0 "$holder" "$tool" -t filter >"$tool"; done
  ask_engine 64990:64990 >engine-to-proxy || true
  for ids in 0:0 1000:1000; do ask_engine "$ids"; done >engine-to-others || true
}

setup() { make_project; }
teardown() { lab POST /reset '{}'; }

enter() { cd "$USERS/projects-1000/$1-resolver" || return; }

resolver_answers() {
  enter "$1"
  assert_equal "$(head -1 answers)" "nameserver 127.0.0.1"
  assert_equal "$(grep -c nameserver answers)" 1
  assert_contains "$(cat answers)" "140.82.112.3"
  assert_contains "$(cat answers)" "2606:50c0:8000::3"
  assert_contains "$(cat after)" "gitlab.com"
}

engine_rules_survive() {
  enter "$1"
  assert_contains "$(cat nat)" "-A OUTPUT -d 127.0.0.11/32 -j DOCKER_OUTPUT"
  assert_contains "$(cat nat)" "-A POSTROUTING -d 127.0.0.11/32 -j DOCKER_POSTROUTING"
  assert_contains "$(grep -- '-A DOCKER_OUTPUT' nat)" "DNAT --to-destination 127.0.0.11:"
  assert_equal "$(grep -o "AGENTBOX[A-Z-]*" nat | sort -u)" AGENTBOX-REDIRECT
  # It goes on serving, but nobody except the box's own resolver.
  assert_equal "$(cat engine-to-proxy)" "$(docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$LAB_CONTAINER")"
  assert_equal "$(cat engine-to-others)" $'ECONNREFUSED\nECONNREFUSED'
}

chains_come_first() {
  enter "$1"
  local tool chain
  for tool in iptables-save ip6tables-save; do
    for chain in INPUT FORWARD OUTPUT; do assert_contains "$(cat "$tool")" ":$chain DROP"; done
    assert_equal "$(grep -m1 -- '^-A OUTPUT' "$tool")" "-A OUTPUT -j AGENTBOX-OUT"
    assert_equal "$(grep -m1 -- '^-A INPUT' "$tool")" "-A INPUT -j AGENTBOX-IN"
  done
}

for topology in container sidecar; do
  bats_test_function --description "case 10 ($topology): the box's own resolver, and no other, answers in a box on a user-defined network" -- resolver_answers "$topology"
  bats_test_function --description "case 10 ($topology): Docker's resolver and its NAT rules survive, for the box's resolver alone, and of ours only the redirect is in the nat table" -- engine_rules_survive "$topology"
  bats_test_function --description "case 16 ($topology): in the kernel of a box the own chain comes first and every policy is DROP, in both families" -- chains_come_first "$topology"
done

@test "case 2: a critical name that does not exist stops the start with 69; no agent runs" {
  lab POST /dns '{"api.anthropic.com":{"rcode":"NXDOMAIN"}}'
  run -69 --separate-stderr box -- sh -c 'echo the agent runs' </dev/null
  assert_equal "$output" ""
  assert_contains "$stderr" "api.anthropic.com:443 does not resolve: the name does not exist (NXDOMAIN)"
  refute_contains "$stderr" "verified"
}

@test "case 2: a critical service that resets connections stops the start with 69" {
  lab POST /hosts '{"140.82.112.3":{"tcp":"reset"},"2606:50c0:8000::3":{"tcp":"reset"}}'
  run -69 --separate-stderr box -- sh -c 'echo the agent runs' </dev/null
  assert_equal "$output" ""
  assert_contains "$stderr" "github.com:443 does not answer"
}

@test "case 2: an optional name that does not exist is a warning, and the box starts" {
  lab POST /dns '{"registry.gitlab.com":{"rcode":"NXDOMAIN"}}'
  run -0 --separate-stderr box -- echo started </dev/null
  assert_equal "$output" started
  assert_contains "$stderr" "warning: resolving: not reachable, the name does not exist (NXDOMAIN): registry.gitlab.com"
}

@test "case 16: an allowed name that resolves to a private or metadata address stays closed, with a warning" {
  lab POST /dns '{"claude.com":{"a":["10.1.2.3"],"aaaa":[]},"gitlab.com":{"a":["169.254.169.254"],"aaaa":["::ffff:10.1.2.3"]}}'
  # Neither by its name nor, past the resolver, by the address itself.
  run -0 --separate-stderr box -- sh -c 'for pair in claude.com:10.1.2.3 gitlab.com:169.254.169.254; do name=${pair%:*} code=0; curl --noproxy \* -sS "https://$name/" 2>/dev/null || code=$?; curl --noproxy \* -sS --resolve "$name:443:${pair#*:}" "https://$name/" 2>/dev/null; echo "$name $code $?"; done' </dev/null
  assert_equal "$output" $'claude.com 6 35\ngitlab.com 6 35'
  assert_contains "$stderr" "warning: resolving: not reachable, the name has no address, or only special-purpose ones, which stay closed: claude.com, gitlab.com"
  local log
  log=$(grep -l '"host":"claude.com"' "$HOME"/.agentbox/sessions/*/log/decisions.jsonl | tail -1)
  assert_contains "$(jq -r 'select(.host == "claude.com" and .action == "deny") | "\(.reason) \(.detail)"' "$log")" "not_allowed_local it leads to 10.1.2.3: "
  assert_contains "$(jq -r 'select(.host == "gitlab.com" and .action == "deny") | "\(.reason) \(.detail)"' "$log")" "not_allowed_local it leads to 169.254.169.254: "
  # The control: without the firewall the same name leads there.
  run -0 --separate-stderr box_off -- sh -c 'curl --noproxy \* -sS https://claude.com/ | jq -r .server' </dev/null
  assert_equal "$output" 10.1.2.3
}

@test "case 8: --full-network overrides the firewall, loudly" {
  run -0 --separate-stderr box --full-network -- curl --noproxy \* -sS https://example.com/ </dev/null
  assert_contains "$output" '"sni":"example.com"'
  assert_contains "$stderr" "--full-network overrides AGENTBOX_FIREWALL=1: FIREWALL OFF"
}

@test "case 16: networks of the host, of other containers and none are refused before anything starts" {
  local name
  for name in host none container:x; do
    run -64 env AGENTBOX_FIREWALL=1 "$AGENTBOX" run --network "$name" -- true
    assert_contains "$output" "--network"
  done
}

@test "case 2: on the default bridge, with a resolver that does not answer, the start is refused with 69 and the name" {
  cd "$BATS_FILE_TMPDIR/unanswered"
  eventually test -s code
  assert_equal "$(cat code)" 69
  assert_equal "$(cat output)" ""
  assert_contains "$(cat log)" "the critical service api.anthropic.com:443 does not resolve: the resolver failed (SERVFAIL)"
  assert_contains "$(cat log)" "the critical service github.com:443 does not resolve"
  assert_contains "$(cat log)" "fix:"
}
