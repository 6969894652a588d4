# What the agent's programs are told of the box's proxy, and what they trust where it opens TLS. Nothing depends on it: the rows
# of name-wall.bats hold with and without.
load helpers
load orders

setup() { lab POST /reset '{}'; }
teardown() { [ -z "${PROJECT-}" ] || touch "$PROJECT/over"; end_background; }

are_told() {
  local container
  make_project_in "$1" "told-$BATS_TEST_NUMBER"
  trusted_config "$1" <<<$'[network]\nallow_hosts = ["example.com"]'
  open_box "$1" -e HTTPS_PROXY=http://ada:s3cret@proxy.corp.example:3128 -e NO_PROXY=.corp.example -e JAVA_TOOL_OPTIONS=-Xmx1g
  assert_contains "$(cat box.log)" "HTTPS_PROXY of yours: the box's own proxy takes its place"
  refute_contains "$(cat box.log)" s3cret
  assert_contains "$(cat box.log)" "may be reached by name"
  assert_equal "$(order 'env | grep -iE "_proxy=|^JAVA" | sort')" "ALL_PROXY=socks5h://127.0.0.1:8081
HTTPS_PROXY=http://127.0.0.1:3128
HTTP_PROXY=http://127.0.0.1:3128
JAVA_TOOL_OPTIONS=-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts=localhost|127.0.0.1|[::1]|.corp.example
NODE_USE_ENV_PROXY=1
NO_PROXY=localhost,127.0.0.1,::1,.corp.example
WSS_PROXY=http://127.0.0.1:3128
WS_PROXY=http://127.0.0.1:3128
all_proxy=socks5h://127.0.0.1:8081
http_proxy=http://127.0.0.1:3128
https_proxy=http://127.0.0.1:3128
no_proxy=localhost,127.0.0.1,::1,.corp.example
ws_proxy=http://127.0.0.1:3128
wss_proxy=http://127.0.0.1:3128
exit 0"
  for container in $(containers_of); do refute_contains "$(docker inspect "$container" | jq -r '.[].Config.Env[]')" _PROXY; done
  # A server of the agent's own is reached at once, on the web's ports too, by programs that are told of the proxy.
  assert_equal "$(order 'node -e "for (const port of [80, 3000]) require(\"node:http\").createServer((_, answer) => answer.end(\"own\")).listen(port)" & sleep 1
    for port in 80 3000; do curl -sS http://localhost:$port/; curl -sS http://127.0.0.1:$port/; node -e "fetch(\"http://localhost:$port/\").then((answer) => answer.text()).then(console.log)"; done; kill $!')" $'ownownown\nownownown\nexit 0'
  assert_equal "$(order 'node -e "fetch(\"https://example.com/\").then(({ status }) => console.log(status))"')" $'200\nexit 0'
  logged "$1" '.protocol == "https-connect" and .host == "example.com" and .action == "allow"'
}

trust() {
  make_project_in "$1" "trust-$BATS_TEST_NUMBER"
  trusted_config "$1" <<<$'[network]\nallow_hosts = ["example.com", "example.net"]\n[network_proxy.mitm]\nenabled = true\npassthrough = ["example.net"]'
  open_box "$1"
  local issuer='curl -sSv -o /dev/null https://HOST/ 2>&1 | grep -o "issuer: CN=AgentBox [a-z]*"; curl --noproxy "*" -sSv -o /dev/null https://HOST/ 2>&1 | grep -o "issuer: CN=AgentBox [a-z]*"'
  assert_equal "$(order "${issuer//HOST/example.com}")" $'issuer: CN=AgentBox interception\nissuer: CN=AgentBox interception\nexit 0'
  assert_equal "$(order "${issuer//HOST/example.net}")" $'issuer: CN=AgentBox lab\nissuer: CN=AgentBox lab\nexit 0'
  assert_equal "$(order 'for host in example.com example.net; do node -e "fetch(\"https://$host/\").then(({ status }) => console.log(status), ({ cause }) => console.log(cause.code))"; NODE_USE_ENV_PROXY= node -e "fetch(\"https://$host/\").then(({ status }) => console.log(status), ({ cause }) => console.log(cause.code))"; done')" $'200\n200\n200\n200\nexit 0'
  assert_contains "$(order 'git ls-remote https://github.com/owner/repo HEAD')" "HEAD"
  # A program that trusts what it always did refuses what is opened, and not what is passed through.
  assert_equal "$(order 'for host in example.com example.net; do CURL_CA_BUNDLE= SSL_CERT_FILE= curl --cacert /etc/ssl/certs/ca-certificates.crt -sS -o /dev/null https://$host/ 2>/dev/null; echo $?; done')" $'60\n0\nexit 0'
  assert_contains "$(order 'echo planted >>/run/agentbox/ca-bundle.crt')" "exit 2"
  assert_equal "$(order 'grep -c "PRIVATE KEY" /run/agentbox/ca-bundle.crt')" $'0\nexit 1'
}

for topology in container sidecar; do
  bats_test_function --description "case 19, 39 ($topology): programs are told of the box's proxy and of nobody else's, and reach the agent's own servers" -- are_told "$topology"
  bats_test_function --description "interception ($topology): curl, Node and git trust what the box's proxy shows, by their variables, and hosts that are passed through show their own" -- trust "$topology"
done
