# What a box with the firewall on reaches and what not. Everything is tried by one box without a firewall
# (the control) and by one with it; the tests read what came of it.
load helpers

# CASE|NAME|TARGET; the words in capitals are addresses that are known when the lab runs.
reached=(
  '13|an allowed name|tcp:140.82.112.3:443'
  '13|its IPv6 twin|tcp:[2606:50c0:8000::3]:443'
  "18|SSH in GitHub's ranges|tcp:140.82.121.9:22"
  "18|SSH in GitHub's IPv6 ranges|tcp:[2606:50c0::9]:22"
  '13|SSH on port 443 of a listed host|tcp:93.184.216.7:443'
  '10|its own resolver over UDP|udp:RESOLVER:53'
  '10|its own resolver over TCP|tcp:RESOLVER:53'
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
  make_project "$BATS_FILE_TMPDIR/project"
  cp "$ROOT"/test/fixtures/{reach.mjs,listen.mjs,packets.py} .
  "$NODE" listen.mjs 0 >host-port 3>&- &
  export SIBLING_CONTAINER
  SIBLING_CONTAINER=$(docker run --detach --init --network "$LAB_NETWORK" --volume "$PWD/listen.mjs:/listen.mjs:ro" --cap-add NET_RAW --entrypoint node "$IMAGE" /listen.mjs 3000)
  eventually test -s host-port
  read_addresses

  local -a targets
  mapfile -t targets < <(printf '%s\n' "${reached[@]}" "${refused[@]}" | cut -d'|' -f3 | concrete)
  box_off -- node reach.mjs "${targets[@]}" >off.json 2>off.log
  docker exec --interactive "$SIBLING_CONTAINER" python3 - "$(broadcast)" <packets.py >packets-off

  lab POST /reset '{}'
  # The box listens, too: on 4000, which nobody published.
  cat >inside <<'INSIDE'
node listen.mjs 4000 >listening &
until [ -s listening ]; do sleep 0.05; done
hostname -I >own-addresses
timeout 20 sh -c 'until [ -e sibling-tried ]; do sleep 0.05; done'
broadcast=$1; shift
node reach.mjs --in-turn "$@" >on.json
python3 packets.py "$broadcast" >packets-on
curl -sS -o /dev/null https://example.com/ 2>curl-refused; echo "$?" >curl-code
INSIDE
  box -- sh inside "$(broadcast)" "${targets[@]}" 2>on.log 3>&- &
  local box=$!
  file_appears own-addresses
  try_from_sibling 4000 >sibling.json
  touch sibling-tried
  wait "$box"
  lab GET /connections >connections.json

  # The controls of the other direction and of the name that is not allowed.
  rm -f sibling-tried listening own-addresses
  box_off -- sh -c 'node listen.mjs 4000 >listening & until [ -s listening ]; do sleep 0.05; done; hostname -I >own-addresses; curl -sS https://example.com/ >curl-off; timeout 20 sh -c "until [ -e sibling-tried ]; do sleep 0.05; done"' 2>/dev/null 3>&- &
  box=$!
  file_appears own-addresses
  try_from_sibling 4000 >sibling-off.json
  touch sibling-tried
  wait "$box"
}

teardown_file() {
  end_background
  docker rm --force "$SIBLING_CONTAINER" >/dev/null
}

setup() {
  cd "$BATS_FILE_TMPDIR/project"
  read_addresses
}

read_addresses() {
  HOSTPORT=$(cat host-port)
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

outcome() {
  jq --raw-output --exit-status --arg target "$2" '.[] | select(.target == $target).outcome' "$1"
}

was_reached() {
  local target
  target=$(concrete <<<"$1")
  assert_equal "$(outcome off.json "$target")" connected
  assert_equal "$(outcome on.json "$target")" connected
}

was_refused() {
  local target code=ECONNREFUSED
  target=$(concrete <<<"$1")
  [[ $target != udp:* ]] || code=EPERM
  assert_equal "$(outcome off.json "$target")" connected
  assert_equal "$(outcome on.json "$target")" "$code"
  local ms
  ms=$(jq --arg target "$target" '.[] | select(.target == $target).ms' on.json)
  [ "$ms" -lt 100 ] || { echo "the refusal took $ms ms" >&2; return 1; }
  # The lab plays every address but the host's and the siblings': no packet of the attempt may have arrived.
  local address port
  address=$(sed -E 's/^[a-z]+:\[?([^]]*)\]?:[0-9]+$/\1/' <<<"$target")
  port=${target##*:}
  assert_equal "$(jq --arg address "$address" --argjson port "$port" --arg transport "${target%%:*}" \
    'map(select(.address == $address and .port == $port and .transport == $transport)) | length' connections.json)" 0
}

was_not_sent() {
  assert_equal "$(answer packets-off "$1")" "$2"
  case $(answer packets-on "$1") in EPERM | EACCES) ;; *) answer packets-on "$1" >&2; return 1 ;; esac
}

for row in "${reached[@]}"; do
  IFS='|' read -r case name target <<<"$row"
  bats_test_function --description "case $case: a box reaches $name" -- was_reached "$target"
done
for row in "${refused[@]}"; do
  IFS='|' read -r case name target <<<"$row"
  bats_test_function --description "case $case: a box is refused $name at once, and nothing arrives there" -- was_refused "$target"
done
for row in "${packets[@]}"; do
  IFS='|' read -r case name attempt control <<<"$row"
  bats_test_function --description "case $case: a box cannot send $name" -- was_not_sent "$attempt" "$control"
done

@test "case 1: without the firewall a box reaches everything, and the start says so loudly" {
  assert_contains "$(cat off.log)" "FIREWALL OFF"
  assert_equal "$(jq 'map(select(.outcome != "connected")) | length' off.json)" 0
}

@test "case 1: with the firewall the last line before the command says what is enforced, after validation" {
  local ready
  ready=$(grep '^agentbox:' on.log | tail -1)
  assert_contains "$ready" "firewall on:"
  assert_contains "$ready" "everything else is refused; verified"
  assert_contains "$(grep '^agentbox:' on.log | tail -2 | head -1)" "agentbox: validation: 2 critical services answer, the canaries are refused"
}

@test "case 13: curl is refused a name that is not allowed by a reset, not by a certificate or a time-out" {
  assert_contains "$(cat curl-off)" '"sni":"example.com"'
  assert_equal "$(cat curl-code)" 7
  assert_contains "$(cat curl-refused)" "Failed to connect to example.com port 443"
}

@test "case 16: a sibling container cannot connect into a box" {
  assert_equal "$(jq -c 'map(.outcome)' sibling-off.json)" '["connected","connected"]'
  assert_equal "$(jq -c 'map(.outcome)' sibling.json)" '["ECONNREFUSED","ECONNREFUSED"]'
}

@test "case 15: nothing but DNS, HTTPS and SSH has left the box" {
  assert_equal "$(jq -c 'map(.port) | unique' connections.json)" '[22,53,443]'
}
