# What happens when a program of a box is killed from outside, or one of its two containers (cases 27, 36).
load helpers
load orders

setup() { lab POST /reset '{}'; }
teardown() { [ -z "${PROJECT-}" ] || echo 0 >"$PROJECT/over"; end_background; }

# Kills a program of the box under its own uid, from outside: NAME is what its command line holds.
kill_in() {
  docker exec --user "$1" "$(holder_of)" sh -c 'for dir in /proc/[0-9]*; do { tr "\0" " " <"$dir/cmdline"; } 2>/dev/null | grep -q "^[^ ]*node .*/'"$2"'[.]mjs" && kill -9 "${dir#/proc/}"; done; true'
}

# The processes below one of this test's own.
descendants() {
  local child
  for child in $(pgrep -P "$1"); do descendants "$child"; echo "$child"; done
}

proxy_killed() {
  make_project_in "$1" "killed-$BATS_TEST_NUMBER"
  write_config <<<'[network]'
  cp "$ROOT/test/fixtures/take-port.py" .
  open_box "$1"
  # Meanwhile the agent does its best to be the resolver itself, and a client asks for what is not allowed.
  order 'python3 take-port.py taken stop & (until [ -e stop ]; do curl --noproxy \* -sS -o /dev/null --max-time 3 --resolve example.com:443:93.184.220.34 https://example.com/ 2>/dev/null && touch opened; getent ahostsv4 example.org && touch answered; sleep 0.05; done) >/dev/null 2>&1 &' >/dev/null
  eventually test -e taken
  local number
  for number in 1 2; do
    kill_in 64990:64990 proxy
    eventually is_back
    logged "$1" '.event == "proxy-restarted"'
    sleep 0.3
  done
  touch stop
  sleep 0.3
  [ ! -e opened ] && [ ! -e answered ]
  # Node marks the datagram sockets that it takes over as reusable, so who asks for that may share them; what
  # such a one answers opens nothing. Nobody gets the port as he would if it were free for a moment.
  assert_equal "$(grep -v -e '^udp taken .*(2,' taken | sort -u)" $'tcp EADDRINUSE\nudp EADDRINUSE'
  [ "$(decisions "$1" 'select(.event == "proxy-restarted") | .seq' | wc -l)" -ge 2 ]
  refute_contains "$(lab GET /questions | jq -r '.[].name')" example.org
}

is_back() { order 'curl --noproxy \* -sS -o /dev/null -w "%{http_code}\n" https://gitlab.com/' | grep -q 200; }

keeper_killed() {
  make_project_in "$1" "keeper-$BATS_TEST_NUMBER"
  # With the name wall the web ends with its proxy; here the kernel alone goes on.
  trusted_config "$1" <<<$'[network]\nenforcement = "address"'
  open_box "$1"
  assert_contains "$(order 'curl --noproxy \* -sS -o /dev/null -w "%{http_code}\n" https://gitlab.com/')" 200
  known=$(order 'getent ahostsv4 gitlab.com' | awk '{ print $1; exit }')
  kill_in 64991:64990 keeper
  sleep 0.5
  lab POST /reset '{}'
  local said
  said=$(order 'RES_OPTIONS="timeout:1 attempts:1" getent ahosts example.org; echo "asked $?"; curl --noproxy \* -sS --connect-timeout 2 --resolve example.com:443:93.184.220.34 https://example.com/ 2>&1')
  assert_contains "$said" "asked 2"
  assert_contains "$said" "Failed to connect to example.com"
  # What the kernel has learned goes on; a change is refused, and opens nothing.
  assert_contains "$(order 'curl --noproxy \* -sS -o /dev/null -w "%{http_code}\n" --resolve gitlab.com:443:'"$known"' https://gitlab.com/')" 200
  run in_topology "$1" policy allow example.com
  [ "$status" -ne 0 ]
  assert_contains "$(order 'curl --noproxy \* -sS --connect-timeout 2 --resolve example.com:443:93.184.220.34 https://example.com/ 2>&1')" "Failed to connect"
  refute_contains "$(lab GET /connections | jq -r '.[].address')" 93.184.220.34
  refute_contains "$(lab GET /questions | jq -r '.[].name')" example
}

for topology in container sidecar; do
  bats_test_function --description "case 27 ($topology): the resolver killed opens nothing, frees no port, and is back for the next request" -- proxy_killed "$topology"
  bats_test_function --description "case 27 ($topology): the keeper killed opens nothing" -- keeper_killed "$topology"
done

@test "case 36 (sidecar): of a command line killed by SIGKILL neither container is left after the next start" {
  make_project_in sidecar sigkill
  write_config <<<'[network]'
  open_box sidecar
  assert_equal "$(containers_of | wc -l)" 2
  local pid pids
  mapfile -t pids < <(descendants "$BOX")
  kill -KILL "${pids[@]}" "$BOX"
  # The launcher is nobody's child any more, and init has to see its end first.
  for pid in "${pids[@]}"; do eventually test ! -e "/proc/$pid"; done
  wait "$BOX" || true
  # The agent's program goes on in its closed box until then.
  run -0 configured sidecar run -- true
  assert_equal "$(containers_of)$(sessions_of)" ""
}

@test "case 27 (sidecar): a holder that ends takes the agent's container with it, and a restarted one opens nothing" {
  make_project_in sidecar holder
  write_config <<<'[network]'
  open_box sidecar
  local holder agent
  holder=$(holder_of)
  agent=$(agent_of)
  order '(until [ -e stop ]; do curl --noproxy \* -sS -o /dev/null --max-time 3 --resolve example.com:443:93.184.220.34 https://example.com/ 2>/dev/null && touch opened; date >alive; sleep 0.05; done) >/dev/null 2>&1 &' >/dev/null
  eventually test -e alive
  docker kill "$holder" >/dev/null
  docker start "$holder" >/dev/null 2>&1 || true
  local code=0
  wait "$BOX" || code=$?
  assert_equal "$code" 70
  assert_equal "$(docker ps --all --quiet --no-trunc | grep -e "$agent" -e "$holder")" ""
  [ ! -e opened ]
  assert_contains "$(cat box.log)" "holder"
}

@test "case 27 (sidecar): the agent's container does not start into a namespace whose walls are gone" {
  make_project_in sidecar gate
  write_config <<<'[network]'
  open_box sidecar
  local holder agent image
  holder=$(holder_of)
  agent=$(agent_of)
  # The same container again, as an engine would restart it, once while the walls stand and once without them.
  nsenter --net="/proc/$(docker inspect --format '{{.State.Pid}}' "$holder")/ns/net" sh -c 'iptables -P OUTPUT ACCEPT; iptables -F OUTPUT; ip6tables -P OUTPUT ACCEPT; ip6tables -F OUTPUT; iptables -P INPUT ACCEPT; iptables -F INPUT; iptables -t nat -F OUTPUT; ip6tables -t nat -F OUTPUT'
  assert_contains "$(order 'curl --noproxy \* -sS -o /dev/null -w "%{http_code}\n" --resolve example.com:443:93.184.220.34 https://example.com/')" 200
  rm -f up
  docker restart --time 0 "$agent" >/dev/null 2>&1 || true
  local code=0
  wait "$BOX" || code=$?
  echo "code $code"; tail -3 box.log
  [ ! -e up ]
}
