# Ways to carry data out by DNS, or to reach another resolver than the box's own (cases 14, 15): tried once in a
# box of each topology and once, as the control, without a firewall. The lab's resolver is the witness.
load helpers

# WAY|OUTCOME; the ways are those of the fixture dns-tunnels.py.
ways=(
  'own A|NXDOMAIN+0' 'own AAAA|NXDOMAIN+0' 'own TXT|NXDOMAIN+0' 'own NULL|NXDOMAIN+0' 'own HTTPS|NXDOMAIN+0'
  'own long labels|NXDOMAIN+0' 'own mixed case|NXDOMAIN+0' 'own TCP|NXDOMAIN+0' 'own reverse|NXDOMAIN+0'
  'own below an exact name|NXDOMAIN+0' 'name resolution by libc|gaierror -2'
  'own ANY|NXDOMAIN+0' 'own transfer|NXDOMAIN+0' 'own ANY of an allowed name|REFUSED+0' 'own transfer of an allowed name|REFUSED+0' 'own CHAOS class|REFUSED+0' 'own update|NOTIMP+0' 'own two questions|FORMERR+0'
  'own pipelined|NOERROR+1 NXDOMAIN+0'
  'upstream UDP|PermissionError 1' 'upstream TCP|ConnectionRefusedError 111'
  'upstream IPv6 UDP|PermissionError 1' 'upstream IPv6 TCP|ConnectionRefusedError 111'
  'upstream from a low port|PermissionError 1'
  'foreign UDP|PermissionError 1' 'foreign TCP|ConnectionRefusedError 111' 'foreign IPv6|PermissionError 1'
  'over TLS|ConnectionRefusedError 111' 'over HTTPS|SSLError 1'
  'engine UDP|PermissionError 1' 'engine TCP|ConnectionRefusedError 111'
  "engine's real UDP port|PermissionError 1" "engine's real TCP port|ConnectionRefusedError 111"
  'port 53 of an allowed host|PermissionError 1' 'multicast DNS|PermissionError 1'
)
# What the lab's resolver hears without a firewall: the marks of these ways.
heard=(own-a own-aaaa own-txt own-long own-case own-tcp own-reverse upstream-udp upstream-tcp upstream-udp6 upstream-tcp6 upstream-low
  foreign-udp foreign-tcp foreign-udp6 dot doh engine-udp engine-tcp engine-real-udp engine-real-tcp own-pipe own-below libc)

setup_file() {
  local topology
  for topology in container sidecar; do
    make_project_in "$topology" tunnels
    cp "$ROOT/test/fixtures/dns-tunnels.py" .
    lab POST /reset '{}'
    firewalled "$topology" -- python3 dns-tunnels.py 127.0.0.1 "$LAB_DNS" "$LAB_DNS6" github.com >on 2>log </dev/null
    lab GET /questions >questions.json
  done
  make_project "$BATS_FILE_TMPDIR/control"
  cp "$ROOT/test/fixtures/dns-tunnels.py" .
  lab POST /reset '{}'
  box_off -- python3 dns-tunnels.py 127.0.0.11 "$LAB_DNS" "$LAB_DNS6" github.com >off 2>log </dev/null
  lab GET /questions >questions.json
}

enter() { cd "$USERS/projects-1000/$1-tunnels" || return; }

is_closed() {
  enter "$1"
  assert_equal "$(answer on "$2")" "$3"
}

for topology in container sidecar; do
  for row in "${ways[@]}"; do
    bats_test_function --description "case 14, 15 ($topology): ${row%|*} gets ${row##*|}" -- is_closed "$topology" "${row%|*}" "${row##*|}"
  done
done

@test "case 14: nothing of any way was heard by the recording resolver, in either topology" {
  local topology
  for topology in container sidecar; do
    enter "$topology"
    assert_equal "$topology: $(jq -r '.[].name | ascii_downcase | select(test("tunnel"))' questions.json)" "$topology: "
    # The questions of the start were heard, so the record is one.
    assert_contains "$(jq -r '.[].name | ascii_downcase' questions.json)" github.com
  done
}

@test "case 14: the control: without a firewall each of the ways is heard" {
  cd "$BATS_FILE_TMPDIR/control"
  local names mark
  names=$(jq -r '.[].name | ascii_downcase' questions.json)
  for mark in "${heard[@]}"; do assert_contains "$names" "$mark"; done
}

@test "case 14: every way of the fixture is asked about above" {
  local topology
  for topology in container sidecar; do
    enter "$topology"
    # Three more are answered, and only their cargo must not get out.
    assert_equal "$topology $(wc -l <on)" "$topology $((${#ways[@]} + 2))"
    assert_contains "$(answer on 'own EDNS option')" "NOERROR+"
  done
}

@test "case 14: the decision log of each box tells the names that were refused, with reason and remedy" {
  local topology log
  for topology in container sidecar; do
    enter "$topology"
    log=$(log_in "$topology")
    assert_equal "$topology: $(jq -r 'select(.host == "own-a.tunnel.example.com") | [.protocol, .action, .reason, .hint] | join(" ")' "$log")" \
      "$topology: dns deny not_allowed agentbox policy allow own-a.tunnel.example.com"
    assert_contains "$(jq -r 'select(.protocol == "address") | "\(.host) \(.port) \(.type)"' "$log")" "8.8.8.8 53 udp"
  done
}
