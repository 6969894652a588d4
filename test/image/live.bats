# Names that change while a box runs (cases 11, 29, 30): the same in both topologies.
load helpers
load orders

setup() {
  export AGENTBOX_FIREWALL=1
  lab POST /reset '{}'
}
teardown() {
  touch "$PROJECT/over"
  end_background
  lab POST /reset '{}'
}

# A project of its own with a firewalled box that waits for orders.
open_live() {
  make_project_in "$1" "live-$BATS_TEST_NUMBER"
  cp "$ROOT/test/fixtures/hold-tunnel.mjs" .
  open_box "$1"
}

fetch='curl --noproxy \* -sS -o /dev/null -w "%{http_code}\n" https://example.com/'

allowed_and_denied() {
  open_live "$1"
  assert_contains "$(order "$fetch")" "Could not resolve host"
  run -0 in_topology "$1" policy allow example.com
  assert_contains "$(order "$fetch")" "200"
  # A tunnel that lives, next to one that nobody denies.
  order 'for host in example.com github.com; do node hold-tunnel.mjs "$host" "$host.up" "$host.end" >/dev/null 2>&1 & done' >/dev/null
  eventually test -e example.com.up
  eventually test -e github.com.up
  sleep 1
  [ ! -e example.com.end ]
  run -0 in_topology "$1" policy deny example.com
  eventually test -e example.com.end
  assert_equal "$(cat example.com.end)" ECONNRESET
  sleep 1
  [ ! -e github.com.end ]
  assert_contains "$(order "$fetch")" "Could not resolve host"
  assert_contains "$(order 'curl --noproxy \* -sS --connect-timeout 3 --resolve example.com:443:93.184.220.34 https://example.com/')" "access denied"
}

rotated() {
  lab POST /dns '{"gitlab.com":{"a":["93.184.219.201"],"aaaa":[],"ttl":5}}'
  open_live "$1"
  assert_contains "$(order 'curl --noproxy \* -sS https://gitlab.com/ | tr , "\n" | grep server')" "93.184.219.201"
  lab POST /dns '{"gitlab.com":{"a":["93.184.219.202"],"aaaa":[],"ttl":5}}'
  assert_contains "$(order 'sleep 6; curl --noproxy \* -sS https://gitlab.com/ | tr , "\n" | grep server')" "93.184.219.202"
}

broken_edit() {
  open_live "$1"
  mkdir -p .agentbox
  printf '[network]\nallow_hosts = ["example.com\n' >.agentbox/config.toml
  run -78 in_topology "$1" policy allow --always example.org
  assert_contains "$output" "config.toml:2"
  assert_contains "$(order 'curl --noproxy \* -sS -o /dev/null -w "%{http_code}\n" https://github.com/')" "200"
  rm -r .agentbox
}

for topology in container sidecar; do
  bats_test_function --description "case 29 ($topology): a name that is allowed works at once, and a deny cuts it" -- allowed_and_denied "$topology"
  bats_test_function --description "case 11 ($topology): a new address works at the first request" -- rotated "$topology"
  bats_test_function --description "case 30 ($topology): a broken file changes nothing, and its line is named" -- broken_edit "$topology"
done
