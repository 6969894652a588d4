# Docker's resolver in a box, and what a start does when names do not resolve or services do not answer.
load helpers

# The one start that takes long runs beside the other tests: its resolver never answers, whatever the lab does.
setup_file() {
  make_project "$BATS_FILE_TMPDIR/unanswered"
  (AGENTBOX_FIREWALL=1 "$AGENTBOX" run --dns "$LAB_DNS" -- sh -c 'echo the agent runs' </dev/null >output 2>log && echo 0 >code || echo $? >code) 3>&- &
}
teardown_file() { end_background; }

setup() { make_project; }
teardown() { lab POST /reset '{}'; }

@test "case 10: Docker's embedded resolver answers in a box on a user-defined network" {
  run -0 --separate-stderr box -- sh -c 'cat /etc/resolv.conf; getent ahostsv4 github.com; getent ahostsv6 github.com' </dev/null
  assert_contains "$output" "nameserver 127.0.0.11"
  assert_contains "$output" "140.82.112.3"
  assert_contains "$output" "2606:50c0:8000::3"
}

@test "case 10: Docker's NAT rules for 127.0.0.11 survive, and nothing of ours is in the nat table" {
  box -- sh -c 'touch up; timeout 20 sh -c "until [ -e seen ]; do sleep 0.1; done"; getent hosts gitlab.com >after' </dev/null 2>/dev/null 3>&- &
  file_appears up
  local rules
  rules=$(docker exec --user 0 "$(holder_of)" iptables-save -t nat)
  touch seen
  wait %1
  assert_contains "$rules" "-A OUTPUT -d 127.0.0.11/32 -j DOCKER_OUTPUT"
  assert_contains "$rules" "-A POSTROUTING -d 127.0.0.11/32 -j DOCKER_POSTROUTING"
  assert_contains "$(grep -- '-A DOCKER_OUTPUT' <<<"$rules")" "DNAT --to-destination 127.0.0.11:"
  refute_contains "$rules" AGENTBOX
  assert_contains "$(cat after)" "gitlab.com"
}

@test "case 16: in the kernel of a box the own chain comes first and every policy is DROP, in both families" {
  box -- sh -c 'touch up; timeout 20 sh -c "until [ -e seen ]; do sleep 0.1; done"' </dev/null 2>/dev/null 3>&- &
  file_appears up
  local tool rules
  for tool in iptables-save ip6tables-save; do
    rules=$(docker exec --user 0 "$(holder_of)" "$tool" -t filter)
    for chain in INPUT FORWARD OUTPUT; do assert_contains "$rules" ":$chain DROP"; done
    assert_equal "$(grep -m1 -- '^-A OUTPUT' <<<"$rules")" "-A OUTPUT -j AGENTBOX-OUT"
    assert_equal "$(grep -m1 -- '^-A INPUT' <<<"$rules")" "-A INPUT -j AGENTBOX-IN"
  done
  touch seen
  wait %1
}

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
  run -0 --separate-stderr box -- sh -c 'for name in claude.com gitlab.com; do curl -sS https://$name/ 2>/dev/null; echo "$name $?"; done' </dev/null
  assert_equal "$output" $'claude.com 7\ngitlab.com 7'
  assert_contains "$stderr" "claude.com resolves to 10.1.2.3"
  assert_contains "$stderr" "gitlab.com resolves to 169.254.169.254"
  # The control: without the firewall the same name leads there.
  run -0 --separate-stderr box_off -- sh -c 'curl -sS https://claude.com/ | jq -r .server' </dev/null
  assert_equal "$output" 10.1.2.3
}

@test "case 8: --full-network overrides the firewall, loudly" {
  run -0 --separate-stderr box --full-network -- curl -sS https://example.com/ </dev/null
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
  assert_contains "$(cat log)" "the critical service api.anthropic.com:443 does not resolve: the resolver did not answer in time"
  assert_contains "$(cat log)" "the critical service github.com:443 does not resolve"
  assert_contains "$(cat log)" "fix:"
}
