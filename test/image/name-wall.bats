# The third wall (cases 17, 19, 27): what a connection says of itself decides, with and without proxy variables. Two names share an
# address in the lab; one of them is allowed.
load helpers
load orders

CONFIG='[network]
allow_hosts = ["http://shared-a.lab-names.example", "http://private.lab-names.example", "example.com", "http://example.net"]'

# NAME|DIRECT OR PROXIED|OUTCOME|REASON in the decision log, where it is a refusal
rows=(
  'TLS to the allowed name|direct|200 shared-a.lab-names.example|'
  'TLS to the allowed name over IPv6|direct|200 shared-a.lab-names.example|'
  'TLS to the other name on its address|direct|alert number 49|not_allowed'
  'TLS to the other name over IPv6|direct|alert number 49|not_allowed'
  'TLS without a name|direct|alert number 49|host_mismatch'
  'TLS with the other name byte by byte|direct|alert number 49|not_allowed'
  'TLS with the other name over many records|direct|alert number 49|not_allowed'
  'TLS to an address that nobody named|direct|alert number 49|not_allowed'
  'TLS with an allowed name to another address|direct|200 shared-a.lab-names.example|'
  'no TLS on port 443|direct|alert number 49|denied'
  'HTTP to the allowed name|direct|200 shared-a.lab-names.example|'
  'HTTP to the other name|direct|403 blocked-by-allowlist not_allowed|not_allowed'
  'HTTP with a URI and another Host|direct|403 blocked-by-policy host_mismatch|host_mismatch'
  'HTTP with the other URI and the allowed Host|direct|403 blocked-by-allowlist not_allowed|not_allowed'
  'HTTP without a Host|direct|400|denied'
  'HTTP with two Hosts|direct|400|denied'
  'HTTP with two lengths|direct|400|denied'
  'HTTP with a second request behind the first|direct|403 blocked-by-allowlist not_allowed|not_allowed'
  'HTTP to the metadata service|direct|403 blocked-by-allowlist not_allowed|not_allowed'
  'HTTP to an allowed name that leads inside|direct|403 blocked-by-allowlist not_allowed_local|not_allowed_local'
  'CONNECT to the allowed name|proxied|200 shared-a.lab-names.example|'
  'CONNECT to the other name|proxied|403 blocked-by-allowlist not_allowed|not_allowed'
  'CONNECT to the allowed name and TLS to the other|proxied|alert number 49|host_mismatch'
  'CONNECT to the allowed name and TLS without a name|proxied|alert number 49|host_mismatch'
  'CONNECT to the address of the allowed name|proxied|403 blocked-by-allowlist not_allowed|not_allowed'
  'CONNECT to another port|proxied|403 blocked-by-allowlist not_allowed|not_allowed'
  'CONNECT to port 80 and HTTP to the other name|proxied|403 blocked-by-policy host_mismatch|host_mismatch'
  'CONNECT to the proxy itself|proxied|403 blocked-by-allowlist not_allowed|not_allowed'
  'CONNECT to localhost|proxied|403 blocked-by-allowlist not_allowed|not_allowed'
  'CONNECT and HTTP/2 without TLS|proxied|goaway|denied'
  'SOCKS to the allowed name|proxied|200 shared-a.lab-names.example|'
  'SOCKS to the other name|proxied|socks 2|not_allowed'
  'SOCKS to the allowed name and TLS to the other|proxied|alert number 49|host_mismatch'
  'an absolute URI of the allowed name|proxied|200 shared-a.lab-names.example|'
  'an absolute URI of the other name|proxied|403 blocked-by-allowlist not_allowed|not_allowed'
)
# Without a firewall the same direct attempts reach what they ask for.
controls=(
  'TLS to the other name on its address|200 shared-b.lab-names.example'
  'TLS to the other name over IPv6|200 shared-b.lab-names.example'
  'TLS to an address that nobody named|200 evil.example.net'
  # Reached, and told by the server that the hello lacks a key.
  'TLS with the other name over many records|alert number 109'
  'HTTP to the other name|200 shared-b.lab-names.example'
)
# PROGRAM|COMMAND for a host; each ignores proxy variables or is told to.
programs=(
  'curl without a proxy|curl -sS --noproxy "*" -o /dev/null -w "%{http_code}" https://HOST/'
  'curl with HTTP/2|curl -sS --noproxy "*" --http2 -o /dev/null -w "%{http_code}" https://HOST/'
  'curl by the variables|curl -sS -o /dev/null -w "%{http_code}" https://HOST/'
  'curl by SOCKS|curl -sS --proxy socks5h://127.0.0.1:8081 -o /dev/null -w "%{http_code}" https://HOST/'
  'plain HTTP|curl -sS -o /dev/null -w "%{http_code}" http://HOST/'
  'Node fetch without a proxy|NODE_USE_ENV_PROXY= node -e "fetch(\"https://HOST/\").then((r) => console.log(r.status), (e) => console.log(e.cause?.code ?? e.message))"'
  'Node fetch by the variables|node -e "fetch(\"https://HOST/\").then((r) => console.log(r.status), (e) => console.log(e.cause?.code ?? e.message))"'
)

# programs_script: asks each program for an allowed host and for one that is not, and prints NAME / KIND<tab>OUTPUT.
programs_script() {
  local entry
  for entry in "${programs[@]}"; do
    printf 'printf "%%s / allowed\\t%%s\\n" "%s" "$(%s 2>&1 | tr -d "\\n")"\n' "${entry%%|*}" "${entry#*|}" | sed 's/HOST/example.net/'
    printf 'printf "%%s / refused\\t%%s\\n" "%s" "$(%s 2>&1 | tr -d "\\n")"\n' "${entry%%|*}" "${entry#*|}" | sed 's/HOST/shared-b.lab-names.example/'
  done
}

setup_file() {
  local topology
  export AGENTBOX_FIREWALL=1
  make_project
  cp "$ROOT/test/fixtures/web-attacks.mjs" .
  box_off -- node web-attacks.mjs direct >"$BATS_FILE_TMPDIR/control.tsv"
  for topology in container sidecar; do
    make_project_in "$topology" name-wall
    rm -rf ./* .agentbox
    cp "$ROOT/test/fixtures/web-attacks.mjs" .
    programs_script >programs.sh
    trusted_config "$topology" <<<"$CONFIG"
    configured "$topology" run -- sh -c 'node web-attacks.mjs direct; node web-attacks.mjs proxied; sh programs.sh' >"$BATS_FILE_TMPDIR/$topology.tsv" 2>"$BATS_FILE_TMPDIR/$topology.log"
    cp "$(log_in "$topology" | sed 's,decisions.jsonl,log/decisions.jsonl,')" "$BATS_FILE_TMPDIR/$topology.jsonl"
  done
}

# tried TOPOLOGY NAME OUTCOME REASON: what came of it, and that the log says why.
tried() {
  local outcome reasons
  outcome=$(answer "$BATS_FILE_TMPDIR/$1.tsv" "$2")
  assert_equal "$outcome" "$3"
  [ -z "$4" ] || [ "$4" = control ] || {
    reasons=$(jq --raw-output 'select(.kind == "decision" and .action == "deny" and (.protocol | IN("http", "https-connect", "socks5-tcp", "tls-sni"))).reason' "$BATS_FILE_TMPDIR/$1.jsonl" | sort -u)
    assert_contains "$reasons" "$4"
  }
}

program() {
  assert_equal "$(answer "$BATS_FILE_TMPDIR/$1.tsv" "$2 / allowed")" "200"
  refute_contains "$(answer "$BATS_FILE_TMPDIR/$1.tsv" "$2 / refused")" "200"
}

for topology in container sidecar; do
  for row in "${rows[@]}"; do
    IFS='|' read -r name _ outcome reason <<<"$row"
    bats_test_function --description "case 17 ($topology): $name: $outcome" -- tried "$topology" "$name" "$outcome" "$reason"
  done
  for entry in "${programs[@]}"; do
    bats_test_function --description "case 19 ($topology): ${entry%%|*} works for an allowed name and for no other" -- program "$topology" "${entry%%|*}"
  done
done
for row in "${controls[@]}"; do
  IFS='|' read -r name outcome <<<"$row"
  bats_test_function --description "case 17 (no firewall): $name: $outcome" -- tried control "$name" "$outcome" control
done
