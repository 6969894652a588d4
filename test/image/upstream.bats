# A name whose address changes all the time, and resolvers that fail for a while (cases 11, 12).
load helpers
load orders

teardown() { [ -z "${PROJECT-}" ] || touch "$PROJECT/over" "$PROJECT/stop"; end_background; lab POST /reset '{}'; }

outlives() {
  make_project_in "$1" "upstream-$BATS_TEST_NUMBER"
  lab POST /reset '{}'
  lab POST /dns '{"gitlab.com":{"a":["93.184.219.201"],"aaaa":[],"ttl":5}}'
  trusted_config "$1" <<<$'[network]\nallow_hosts = ["*.wild.lab-names.example"]'
  cp "$ROOT/test/fixtures/hold-tunnel.mjs" .
  open_box "$1"
  order 'node hold-tunnel.mjs github.com held.up held.end >/dev/null 2>&1 & (until [ -e stop ]; do curl --noproxy \* -sS -o /dev/null --max-time 8 https://gitlab.com/ >/dev/null 2>>failed && echo >>done; sleep 0.1; done) >/dev/null 2>&1 &' >/dev/null
  eventually test -e held.up
  local number
  for number in 2 3 4; do
    lab POST /dns '{"gitlab.com":{"a":["93.184.219.20'"$number"'"],"aaaa":[],"ttl":5}}'
    sleep 5
  done
  assert_equal "$(cat failed 2>/dev/null)" ""
  [ "$(wc -l <done)" -gt 30 ]
  touch stop
  order 'getent ahostsv4 registry.gitlab.com' >/dev/null
  lab POST /dns '{"*":{"silent":true}}'
  order 'for name in a b c; do getent ahostsv4 $name.wild.lab-names.example & done; wait' >/dev/null
  logged "$1" '.event == "upstream-failing"'
  assert_contains "$(order 'getent ahostsv4 registry.gitlab.com')" "exit 0"
  [ ! -e held.end ]
  run -0 in_topology "$1" policy show
  assert_contains "$output" "is degraded: "
  assert_contains "$output" "$LAB_DNS"
  lab POST /dns '{"*":null}'
  assert_contains "$(order 'getent ahostsv4 d.wild.lab-names.example')" 93.184.217.30
  logged "$1" '.event == "upstream-back"'
  refute_contains "$(in_topology "$1" policy show)" degraded
}
for topology in container sidecar; do
  bats_test_function --description "case 11, 12 ($topology): no request fails while addresses change; with the resolver down cached answers and connections go on" -- outlives "$topology"
done
