# Limited mode in real boxes (proxy.md, case 22): what only reads is let through, by plain HTTP and inside opened TLS, whether a program
# knows the proxy or not; everything else is refused in words and written down. One box of each topology opens TLS, one does not.
load helpers
load orders

HOSTS='[network]
allow_hosts = ["http://shared-a.lab-names.example", "http://example.net"]'
OPENED="$HOSTS
[network_proxy]
mode = \"limited\"
[network_proxy.mitm]
enabled = true
passthrough = [\"example.net\"]"
# Critical services speak TLS, which such a box cannot let through.
CLOSED="$HOSTS
critical = []
[network_proxy]
mode = \"limited\""

# BOX|NAME|OUTCOME|what the log has of it, where it is a refusal: PROTOCOL METHOD HOST REASON
rows=()
for way in told untold; do
  [ "$way" = told ] && tls=https-connect || tls=tls-sni
  for leg in 'http 1.1' 'https 1.1' 'https 2'; do
    [ "${leg% *}" = http ] && protocol=http || protocol=$tls
    for method in GET HEAD OPTIONS; do rows+=("opened|$way $leg $method|200 ${leg#* }|"); done
    for method in POST PUT DELETE; do
      rows+=("opened|$way $leg $method|403 ${leg#* } blocked-by-method-policy|$protocol $method shared-a.lab-names.example method_not_allowed")
    done
  done
  rows+=(
    "opened|$way http WebSocket|403 1.1 blocked-by-method-policy|http GET shared-a.lab-names.example method_not_allowed"
    "opened|$way https WebSocket|403 1.1 blocked-by-method-policy|$tls GET shared-a.lab-names.example method_not_allowed"
    "opened|$way git|git 128 403|$tls POST github.com method_not_allowed"
    "closed|$way http GET|200 1.1|"
    "closed|$way http POST|403 1.1 blocked-by-method-policy|http POST shared-a.lab-names.example method_not_allowed"
  )
done
rows+=(
  'opened|told passed through|curl 56 403|https-connect CONNECT example.net mitm_required'
  'opened|untold passed through|curl 35 000|tls-sni null example.net mitm_required'
  'opened|CONNECT to what is passed through|403 mitm_required|https-connect CONNECT example.net mitm_required'
  'opened|SOCKS to 443, GET|200 2|'
  'opened|SOCKS to 443, POST|403 2 blocked-by-method-policy|socks5-tcp POST shared-a.lab-names.example method_not_allowed'
  # With interception plain HTTP in a tunnel is read as well.
  'opened|SOCKS to 80, GET|200 1.1|'
  'opened|SOCKS to 80, POST|403 1.1 blocked-by-method-policy|socks5-tcp POST shared-a.lab-names.example method_not_allowed'
  'opened|CONNECT to 80, GET|200 1.1|'
  'opened|CONNECT to 80, POST|403 1.1 blocked-by-method-policy|https-connect POST shared-a.lab-names.example method_not_allowed'
  'closed|told https GET|curl 56 403|https-connect CONNECT shared-a.lab-names.example mitm_required'
  'closed|told https 1.1 GET|curl 56 403|https-connect CONNECT shared-a.lab-names.example mitm_required'
  'closed|untold https GET|curl 35 000|tls-sni null shared-a.lab-names.example mitm_required'
  'closed|untold https 1.1 GET|curl 35 000|tls-sni null shared-a.lab-names.example mitm_required'
  'closed|CONNECT to an allowed name|403 mitm_required|https-connect CONNECT shared-a.lab-names.example mitm_required'
  'closed|SOCKS to 443, GET|curl 97 000|socks5-tcp null shared-a.lab-names.example mitm_required'
  'closed|SOCKS to 80, GET|curl 97 000|socks5-tcp null shared-a.lab-names.example method_not_allowed'
)
# What an agent with a shell tries, by plain HTTP and inside opened TLS. Made-up methods share one line of the log.
for where in http https; do
  [ "$where" = http ] && protocol=http || protocol=tls-sni
  post="$protocol POST shared-a.lab-names.example method_not_allowed"
  malformed="$protocol null \"(malformed request)\" denied"
  rows+=(
    "opened|$where: a GET, and one behind it in one packet|200 200|"
    "opened|$where: a POST behind a GET in one packet|200 403 method_not_allowed|$post"
    "opened|$where: a POST behind a GET with two lengths|400|$malformed"
    "opened|$where: a POST that says GET to the server|403 method_not_allowed|$post"
    # What a server makes of a reading request is its own affair: threat-model, not a refusal.
    "opened|$where: a GET that says POST to the server|200|"
    "opened|$where: post in small letters|403 method_not_allowed|$protocol post shared-a.lab-names.example method_not_allowed"
    "opened|$where: get in small letters|403 method_not_allowed|$protocol post shared-a.lab-names.example method_not_allowed"
    "opened|$where: a method with a blank ahead of it|400|$malformed"
    "opened|$where: TRACE|403 method_not_allowed|"
    # The wish for another protocol is not handed on, so it stays an ordinary GET.
    "opened|$where: a GET that wants h2c|200|"
    "opened|$where: HTTP/2 as if both knew|400|$malformed"
    "opened|$where: CONNECT inside|400|$malformed"
  )
done

setup_file() {
  local topology kind
  for topology in container sidecar; do
    for kind in opened closed; do
      make_project_in "$topology" "limited-$kind"
      rm -rf ./* .agentbox
      cp "$ROOT/test/fixtures/web-clients/limited.mjs" .
      [ "$kind" = opened ] && trusted_config "$topology" <<<"$OPENED" || trusted_config "$topology" <<<"$CLOSED"
      configured "$topology" run -- node limited.mjs "$kind" >"$BATS_FILE_TMPDIR/$topology-$kind.tsv" 2>"$BATS_FILE_TMPDIR/$topology-$kind.log" </dev/null || cat "$BATS_FILE_TMPDIR/$topology-$kind.log" >&2
      jq --raw-output 'select(.kind == "decision" and .action == "deny") | "\(.protocol) \(.method) \(.host) \(.reason)"' \
        "$(log_in "$topology" | sed 's,decisions.jsonl,log/decisions.jsonl,')" >"$BATS_FILE_TMPDIR/$topology-$kind.refused"
    done
  done
}

# tried TOPOLOGY BOX NAME OUTCOME LINE: what came of it, and that the log has the refusal.
tried() {
  assert_equal "$(answer "$BATS_FILE_TMPDIR/$1-$2.tsv" "$3")" "$4"
  [ -z "$5" ] || grep -qxF -- "$5" "$BATS_FILE_TMPDIR/$1-$2.refused" || { printf 'no line "%s" among:\n' "$5" >&2; sort -u "$BATS_FILE_TMPDIR/$1-$2.refused" >&2; return 1; }
}

# Every try has its row, so that none is left without a word here.
complete() {
  local row names=
  for row in "${rows[@]}"; do [ "${row%%|*}" != "$2" ] || names+=$(cut -d '|' -f 2 <<<"$row")$'\n'; done
  assert_equal "$(cut -f 1 "$BATS_FILE_TMPDIR/$1-$2.tsv" | grep -v "$3" | sort)" "$(sort <<<"${names%$'\n'}" | grep -v "$3")"
}

# git cannot ask at all where TLS is not opened; its words differ by whether it knows the proxy.
no_git() {
  assert_contains "$(answer "$BATS_FILE_TMPDIR/$1-closed.tsv" 'told git')" 'git 128 fatal: unable to access'
  assert_contains "$(answer "$BATS_FILE_TMPDIR/$1-closed.tsv" 'told git')" '403'
  assert_contains "$(answer "$BATS_FILE_TMPDIR/$1-closed.tsv" 'untold git')" 'Access was denied'
}

for topology in container sidecar; do
  for row in "${rows[@]}"; do
    IFS='|' read -r box name outcome line <<<"$row"
    bats_test_function --description "limited mode ($topology, TLS $box): $name: $outcome" -- tried "$topology" "$box" "$name" "$outcome" "$line"
  done
  for box in opened closed; do
    bats_test_function --description "limited mode ($topology, TLS $box): every try has a row" -- complete "$topology" "$box" '^\(un\)\?told git$'
  done
  bats_test_function --description "limited mode ($topology, TLS closed): git is refused before it can ask" -- no_git "$topology"
done
