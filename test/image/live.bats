# Names that change while a box runs (cases 11, 29, 30): the same in both topologies.
load helpers

setup() { lab POST /reset '{}'; }
teardown() {
  touch "$PROJECT/over"
  end_background
  lab POST /reset '{}'
}

# Starts a box that waits for orders: each line of the file `orders/N` runs, its output goes to `orders/N.out`.
open_box() {
  make_project_in "$1" "live-$BATS_TEST_NUMBER"
  mkdir -p orders
  cp "$ROOT/test/fixtures/hold-tunnel.mjs" .
  cat >serve.sh <<'SERVE'
n=1
touch up
until [ -e over ]; do
  if [ -e "orders/$n" ]; then sh "orders/$n" >"orders/$n.part" 2>&1; echo "$?" >>"orders/$n.part"; mv "orders/$n.part" "orders/$n.out"; n=$((n + 1)); else sleep 0.05; fi
done
SERVE
  chmod -R a+rwX .
  firewalled "$1" -- sh serve.sh >box.log 2>&1 </dev/null 3>&- &
  file_appears up
}

# order COMMAND: runs it in the box and prints what it said and its exit code.
order() {
  local number
  number=$(($(find orders -name '*[0-9]' | wc -l) + 1))
  echo "$1" >"orders/$number.new"
  chmod a+r "orders/$number.new"
  mv "orders/$number.new" "orders/$number"
  eventually test -e "orders/$number.out"
  cat "orders/$number.out"
}

fetch='curl -sS -o /dev/null -w "%{http_code}\n" https://example.com/'

allowed_and_denied() {
  open_box "$1"
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
  assert_contains "$(order 'curl -sS --connect-timeout 3 --resolve example.com:443:93.184.220.34 https://example.com/')" "Failed to connect"
}

rotated() {
  lab POST /dns '{"gitlab.com":{"a":["93.184.219.201"],"aaaa":[],"ttl":5}}'
  open_box "$1"
  assert_contains "$(order 'curl -sS https://gitlab.com/ | tr , "\n" | grep server')" "93.184.219.201"
  lab POST /dns '{"gitlab.com":{"a":["93.184.219.202"],"aaaa":[],"ttl":5}}'
  assert_contains "$(order 'sleep 6; curl -sS https://gitlab.com/ | tr , "\n" | grep server')" "93.184.219.202"
}

broken_edit() {
  open_box "$1"
  mkdir -p .agentbox
  printf '[network]\nallow_hosts = ["example.com\n' >.agentbox/config.toml
  run -78 in_topology "$1" policy allow --always example.org
  assert_contains "$output" "config.toml:2"
  assert_contains "$(order 'curl -sS -o /dev/null -w "%{http_code}\n" https://github.com/')" "200"
  rm -r .agentbox
}

for topology in container sidecar; do
  bats_test_function --description "case 29 ($topology): a name that is allowed works at once, and a deny cuts it" -- allowed_and_denied "$topology"
  bats_test_function --description "case 11 ($topology): a new address works at the first request" -- rotated "$topology"
  bats_test_function --description "case 30 ($topology): a broken file changes nothing, and its line is named" -- broken_edit "$topology"
done
