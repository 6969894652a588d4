# What a box with the firewall on reaches and what not. Everything is tried by one box without a firewall
# (the control) and by one of each topology with it, side by side; the tests read what came of it.
load helpers
load orders

# CASE|NAME|TARGET; the words in capitals are addresses that are known when the lab runs.
reached=(
  '13|an allowed name|tcp:140.82.112.3:443'
  '13|its IPv6 twin|tcp:[2606:50c0:8000::3]:443'
  "18|SSH in GitHub's ranges|tcp:140.82.121.9:22"
  "18|SSH in GitHub's IPv6 ranges|tcp:[2606:50c0::9]:22"
  '13|SSH on port 443 of a listed host|tcp:93.184.216.7:443'
)
# What there is only with the firewall.
own=(
  '10|its own resolver over UDP|udp:127.0.0.1:53'
  '10|its own resolver over TCP|tcp:127.0.0.1:53'
  '10|its own resolver over UDP and IPv6|udp:[::1]:53'
  '10|its own resolver over TCP and IPv6|tcp:[::1]:53'
)
refused=(
  '15|a name that is not allowed|tcp:93.184.220.34:443'
  '9|its IPv6 twin|tcp:[2606:2800:220:3::34]:443'
  '15|another port of an allowed host|tcp:140.82.112.3:8443'
  '9|another port of its IPv6 twin|tcp:[2606:50c0:8000::3]:8443'
  '15|plain HTTP to a host allowed on 443|tcp:140.82.112.3:80'
  '15|a foreign resolver over UDP|udp:8.8.8.8:53'
  '15|a foreign resolver over TCP|tcp:8.8.8.8:53'
  '15|a foreign resolver over UDP and IPv6|udp:[2001:4860:4860::8888]:53'
  '15|a foreign resolver over TCP and IPv6|tcp:[2001:4860:4860::8888]:53'
  "15|the resolver that the box's own one asks|udp:RESOLVER:53"
  "15|the resolver that the box's own one asks over TCP|tcp:RESOLVER:53"
  "15|the resolver that the box's own one asks over IPv6|udp:[RESOLVER6]:53"
  "15|Docker's resolver|udp:127.0.0.11:53"
  "15|Docker's resolver over TCP|tcp:127.0.0.11:53"
  '15|DNS over TLS|tcp:1.1.1.1:853'
  '15|DNS over TLS and IPv6|tcp:[2606:4700:4700::1111]:853'
  '15|DNS over HTTPS|tcp:8.8.8.8:443'
  '15|QUIC to an allowed host|udp:140.82.112.3:443'
  '15|QUIC to its IPv6 twin|udp:[2606:50c0:8000::3]:443'
  '15|another UDP port of an allowed host|udp:140.82.112.3:7'
  '15|an address nobody named|tcp:203.0.113.7:443'
  '15|the canary|tcp:198.51.100.1:9'
  '15|the IPv6 canary|tcp:[2001:db8::1]:9'
  '16|the metadata service|tcp:169.254.169.254:80'
  '16|the metadata service over IPv6|tcp:[fd00:ec2::254]:80'
  '16|the LAN|tcp:192.168.1.1:80'
  '16|the LAN over UDP|udp:192.168.1.1:7'
  '16|a private address over IPv6|tcp:[fd12:3456::1]:443'
  "16|Docker's default gateway|tcp:172.17.0.1:80"
  '16|another port of the gateway|tcp:RESOLVER:443'
  '16|another port of the IPv6 gateway|tcp:[RESOLVER6]:443'
  '16|the host|tcp:BRIDGE:HOSTPORT'
  '16|the host over IPv6|tcp:[BRIDGE6]:HOSTPORT'
  '16|a sibling container|tcp:SIBLING:3000'
  '16|a sibling container over IPv6|tcp:[SIBLING6]:3000'
  '18|SSH to a host that is not listed|tcp:93.184.217.22:22'
  '18|SSH to its IPv6 twin|tcp:[2606:2800:220:2::22]:22'
)
packets=(
  '15|ICMP|ping|answered' '15|ICMPv6|ping over IPv6|answered'
  '15|raw sockets|raw socket|answered' '15|raw IPv6 sockets|raw socket over IPv6|answered' '15|packet sockets|packet socket|opened'
  '15|UDP-Lite|UDP-Lite|sent' '16|multicast|multicast|sent' '16|IPv6 multicast|multicast over IPv6|sent' '16|broadcast|broadcast|sent'
)

setup_file() {
  make_project "$BATS_FILE_TMPDIR/control"
  cp "$ROOT"/test/fixtures/{reach.mjs,listen.mjs,packets.py} .
  "$NODE" listen.mjs 0 >host-port 3>&- &
  export SIBLING_CONTAINER
  SIBLING_CONTAINER=$(docker run --detach --init --network "$LAB_NETWORK" --volume "$PWD/listen.mjs:/listen.mjs:ro" --cap-add NET_RAW --entrypoint node "$IMAGE" /listen.mjs 3000)
  eventually test -s host-port
  read_addresses

  local -a targets own_targets
  mapfile -t targets < <(printf '%s\n' "${reached[@]}" "${refused[@]}" | cut -d'|' -f3 | concrete)
  mapfile -t own_targets < <(printf '%s\n' "${own[@]}" | cut -d'|' -f3)
  box_off -- node reach.mjs "${targets[@]}" >off.json 2>off.log </dev/null
  docker exec --interactive "$SIBLING_CONTAINER" python3 - "$(broadcast)" <packets.py >packets-off

  lab POST /reset '{}'
  local topology boxes=()
  for topology in container sidecar; do
    make_project_in "$topology" reach
    install -m 644 "$ROOT"/test/fixtures/{reach.mjs,listen.mjs,packets.py} .
    # The kernel's part alone: with the name wall ports 80 and 443 of every address are answered by the proxy (name-wall.bats).
    trusted_config "$topology" <<<$'[network]\nenforcement = "address"'
    # The box listens, too: on 4000, which nobody published.
    cat >inside <<'INSIDE'
node listen.mjs 4000 >listening &
until [ -s listening ]; do sleep 0.05; done
hostname -I >own && mv own own-addresses
timeout 20 sh -c 'until [ -e sibling-tried ]; do sleep 0.05; done'
broadcast=$1; shift
node reach.mjs --in-turn "$@" >on.json
python3 packets.py "$broadcast" >packets-on
curl --noproxy \* -sS -o /dev/null https://example.com/ 2>curl-refused; echo "$?" >curl-code
curl --noproxy \* -sS -o /dev/null --resolve example.com:443:93.184.220.34 https://example.com/ 2>curl-resolved; echo "$?" >curl-resolved-code
INSIDE
    firewalled "$topology" -- sh inside "$(broadcast)" "${targets[@]}" "${own_targets[@]}" 2>on.log </dev/null 3>&- &
    boxes+=($!)
  done
  for topology in container sidecar; do
    enter "$topology"
    file_appears own-addresses
    try_from_sibling 4000 >sibling.json
    touch sibling-tried
  done
  wait "${boxes[@]}"
  lab GET /connections >"$BATS_FILE_TMPDIR/control/connections.json"
  jq --raw-output '.[] | "\(.transport):\(.address):\(.port)"' "$BATS_FILE_TMPDIR/control/connections.json" >"$BATS_FILE_TMPDIR/control/connections"
  for topology in container sidecar; do tabulate "$USERS/projects-1000/$topology-reach/on"; done
  tabulate "$BATS_FILE_TMPDIR/control/off"
  lab GET /questions | jq -r '.[].name | ascii_downcase' >"$BATS_FILE_TMPDIR/control/names"

  # The controls of the other direction and of the name that is not allowed.
  cd "$BATS_FILE_TMPDIR/control"
  box_off -- sh -c 'node listen.mjs 4000 >listening & until [ -s listening ]; do sleep 0.05; done; hostname -I >own && mv own own-addresses; curl --noproxy \* -sS https://example.com/ >curl-off; timeout 20 sh -c "until [ -e sibling-tried ]; do sleep 0.05; done"' 2>/dev/null </dev/null 3>&- &
  local box=$!
  file_appears own-addresses
  try_from_sibling 4000 >sibling.json
  touch sibling-tried
  wait "$box"
}

teardown_file() {
  end_background
  docker rm --force "$SIBLING_CONTAINER" >/dev/null
}

setup() {
  CONTROL=$BATS_FILE_TMPDIR/control
  read_addresses
}

# The project of a topology's box.
enter() { cd "$USERS/projects-1000/$1-reach" || return; }

# Rows are many, and jq takes its time: target, outcome and milliseconds, a line each.
tabulate() { jq --raw-output '.[] | [.target, .outcome, .ms] | @tsv' "$1.json" >"$1.tsv"; }


read_addresses() {
  HOSTPORT=$(cat "$BATS_FILE_TMPDIR/control/host-port")
  local format='{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.GlobalIPv6Address}}{{end}}'
  read -r SIBLING SIBLING6 <<<"$(docker inspect --format "$format" "$SIBLING_CONTAINER")"
  read -r BRIDGE BRIDGE6 <<<"$(docker network inspect --format '{{range .IPAM.Config}}{{.Gateway}} {{end}}' "$LAB_NETWORK")"
}

# The names in capitals become addresses.
concrete() {
  sed -e "s/RESOLVER6/$LAB_DNS6/; s/RESOLVER/$LAB_DNS/; s/BRIDGE6/$BRIDGE6/; s/BRIDGE/$BRIDGE/; s/HOSTPORT/$HOSTPORT/; s/SIBLING6/$SIBLING6/; s/SIBLING/$SIBLING/"
}

broadcast() {
  echo "${LAB_DNS%.*}.255"
}

try_from_sibling() {
  local v4 v6
  read -r v4 v6 <own-addresses
  docker exec --interactive "$SIBLING_CONTAINER" node --input-type=module - "tcp:$v4:$1" "tcp:[$v6]:$1" <reach.mjs
}

# column NUMBER TABLE TARGET
column() { awk -F'\t' -v column="$1" -v target="$3" '$1 == target { print $column; found = 1 } END { exit !found }' "$2"; }

outcome() { column 2 "$@"; }

was_reached() {
  local target
  enter "$1"
  target=$(concrete <<<"$2")
  assert_equal "$(outcome "$CONTROL/off.tsv" "$target")" connected
  assert_equal "$(outcome on.tsv "$target")" connected
}

own_was_reached() {
  enter "$1"
  assert_equal "$(outcome on.tsv "$2")" connected
}

was_refused() {
  local target code=ECONNREFUSED
  enter "$1"
  target=$(concrete <<<"$2")
  [[ $target != udp:* ]] || code=EPERM
  assert_equal "$(outcome "$CONTROL/off.tsv" "$target")" connected
  assert_equal "$(outcome on.tsv "$target")" "$code"
  local ms
  ms=$(column 3 on.tsv "$target")
  [ "$ms" -lt 100 ] || { echo "the refusal took $ms ms" >&2; return 1; }
  # The lab plays every address but the host's and the siblings': no packet of the attempt may have arrived.
  local address port
  address=$(sed -E 's/^[a-z]+:\[?([^]]*)\]?:[0-9]+$/\1/' <<<"$target")
  port=${target##*:}
  assert_equal "$(grep --line-regexp --fixed-strings --count -- "${target%%:*}:$address:$port" "$CONTROL/connections" || true)" 0
}

was_not_sent() {
  enter "$1"
  assert_equal "$(answer "$CONTROL/packets-off" "$2")" "$3"
  case $(answer packets-on "$2") in EPERM | EACCES) ;; *) answer packets-on "$2" >&2; return 1 ;; esac
}

for topology in container sidecar; do
  for row in "${reached[@]}"; do
    IFS='|' read -r case name target <<<"$row"
    bats_test_function --description "case $case ($topology): a box reaches $name" -- was_reached "$topology" "$target"
  done
  for row in "${own[@]}"; do
    IFS='|' read -r case name target <<<"$row"
    bats_test_function --description "case $case ($topology): a box reaches $name" -- own_was_reached "$topology" "$target"
  done
  for row in "${refused[@]}"; do
    IFS='|' read -r case name target <<<"$row"
    bats_test_function --description "case $case ($topology): a box is refused $name at once, and nothing arrives there" -- was_refused "$topology" "$target"
  done
  for row in "${packets[@]}"; do
    IFS='|' read -r case name attempt control <<<"$row"
    bats_test_function --description "case $case ($topology): a box cannot send $name" -- was_not_sent "$topology" "$attempt" "$control"
  done
  bats_test_function --description "case 1 ($topology): with the firewall the last line before the command says what is enforced, after validation" -- was_said "$topology"
  bats_test_function --description "case 13 ($topology): for curl a name that is not allowed does not exist, and its address resets" -- curl_was_refused "$topology"
  bats_test_function --description "case 16 ($topology): a sibling container cannot connect into a box" -- sibling_was_refused "$topology"
done

was_said() {
  enter "$1"
  local validated enforced
  case $1 in
    container) { read -r validated; read -r enforced; } < <(grep '^agentbox:' on.log | tail -2) ;;
    # There the holder says so; the agent's container comes after, and its gate has the last word.
    sidecar)
      { read -r validated; read -r enforced; read -r gate; read -r ready; } < <(grep '^agentbox:' on.log | tail -4)
      assert_contains "$gate" "agentbox: gate: a foreign name does not exist, the canaries are refused"
      assert_contains "$ready" "agentbox: firewall on: the walls of the firewall container hold; verified"
      ;;
  esac
  assert_contains "$validated" "agentbox: validation: 2 critical services answer, a foreign name does not exist, the canaries are refused"
  assert_contains "$enforced" "firewall on: "
  assert_contains "$enforced" "everything else is refused; verified"
}

curl_was_refused() {
  enter "$1"
  assert_contains "$(cat "$CONTROL/curl-off")" '"sni":"example.com"'
  assert_equal "$(cat curl-code)" 6
  assert_contains "$(cat curl-refused)" "Could not resolve host: example.com"
  assert_equal "$(cat curl-resolved-code)" 7
  assert_contains "$(cat curl-resolved)" "Failed to connect to example.com port 443"
}

sibling_was_refused() {
  enter "$1"
  assert_equal "$(jq -c 'map(.outcome)' "$CONTROL/sibling.json")" '["connected","connected"]'
  assert_equal "$(jq -c 'map(.outcome)' sibling.json)" '["ECONNREFUSED","ECONNREFUSED"]'
}

@test "case 1: without the firewall a box reaches everything, and the start says so loudly" {
  assert_contains "$(cat "$CONTROL/off.log")" "FIREWALL OFF"
  assert_equal "$(jq 'map(select(.outcome != "connected")) | length' "$CONTROL/off.json")" 0
}

@test "case 15: nothing but DNS, HTTPS and SSH has left the boxes" {
  # The list that every refusal was looked for in has what did arrive.
  grep --line-regexp --fixed-strings --quiet tcp:140.82.112.3:443 "$CONTROL/connections"
  assert_equal "$(jq -c 'map(.port) | unique' "$CONTROL/connections.json")" '[22,443]'
  # The proxies' questions are counted apart: of names that are allowed, and of no other.
  assert_contains "$(cat "$CONTROL/names")" github.com
  assert_equal "$(grep '^example\.' "$CONTROL/names" || true)" ""
}
