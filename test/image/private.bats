# Private addresses: closed whoever leads there, and opened one by one (cases 16, 21, 22).
load helpers
load orders

setup() { lab POST /reset '{}'; }
teardown() { [ -z "${PROJECT-}" ] || touch "$PROJECT/over"; [ -z "${DB-}" ] || docker rm --force "$DB" >/dev/null; end_background; }

say='for host in example.com pastebin.com evil.example.net; do curl --noproxy \* -sS -o /dev/null --connect-timeout 3 -k https://$host/ 2>/dev/null; echo "$host $?"; done'

opens_the_named_block() {
  make_project_in "$1" "private-$BATS_TEST_NUMBER"
  lab POST /dns '{"example.com":{"a":["10.1.2.3"],"aaaa":[]},"pastebin.com":{"a":["10.1.3.3"],"aaaa":["fd00:ec2::254"]},"evil.example.net":{"a":["169.254.169.254"],"aaaa":[]}}'
  trusted_config "$1" <<<$'[network]\nallow_hosts = ["example.com", "pastebin.com", "evil.example.net"]\nallow_private = ["10.1.2.0/24"]'
  open_box "$1"
  assert_equal "$(order "$say")" $'example.com 0\npastebin.com 6\nevil.example.net 6\nexit 0'
  # The block opens nothing by itself, and the name no other port.
  assert_contains "$(order 'curl --noproxy \* -sS --connect-timeout 3 -k https://10.1.2.4/')" "access denied"
  assert_contains "$(order 'curl --noproxy \* -sS --connect-timeout 3 -k https://10.1.2.4:8443/')" "Failed to connect"
  assert_contains "$(order 'curl --noproxy \* -sS --connect-timeout 3 http://example.com/')" '"reason":"not_allowed"'
  logged "$1" '.host == "pastebin.com" and .reason == "not_allowed_local"'
  logged "$1" '.host == "evil.example.net" and .reason == "not_allowed_local"'
  logged "$1" '.host == "10.1.2.4" and .protocol == "address" and .port == 8443'
  refute_contains "$(lab GET /connections | jq -r '.[].address')" 169.254.169.254
}

# A container on the same network, and the host itself, by the entries that name them. In the lab the host's address
# answers on every port that is tried here.
opens_the_named_port() {
  make_project_in "$1" "sibling-$BATS_TEST_NUMBER"
  cp "$ROOT/test/fixtures/listen.mjs" .
  DB=agentbox-test-db-$BATS_TEST_NUMBER-$$
  docker run --rm --detach --name "$DB" --network "$LAB_NETWORK" --volume "$PWD/listen.mjs:/listen.mjs:ro" --entrypoint node "$IMAGE" /listen.mjs 5432 5433 >/dev/null
  trusted_config "$1" <<<$'[network]\nallow_hosts = [{ host = "'"$DB"'", ports = [5432], private = true }, { host = "host.docker.internal", ports = [5432], private = true }]'
  open_box "$1" --add-host host.docker.internal:host-gateway
  local said
  said=$(order "for target in $DB:5432 $DB:5433 host.docker.internal:5432 host.docker.internal:8443 host.docker.internal:8080; do node -e 'const [host, port] = process.argv[1].split(\":\"); require(\"net\").connect(port, host).on(\"connect\", () => { console.log(port, \"connected\"); process.exit() }).on(\"error\", ({ code }) => console.log(port, code))' \$target; done")
  assert_equal "$said" $'5432 connected\n5433 ECONNREFUSED\n5432 connected\n8443 ECONNREFUSED\n8080 ECONNREFUSED\nexit 0'
  logged "$1" '.protocol == "address" and .port == 8443'
  logged "$1" '.protocol == "address" and .port == 5433'
}

for topology in container sidecar; do
  bats_test_function --description "case 16 ($topology): allow_private opens exactly what it names, and other private answers are written down" -- opens_the_named_block "$topology"
  bats_test_function --description "case 21 ($topology): a private name works on its port only" -- opens_the_named_port "$topology"
done
