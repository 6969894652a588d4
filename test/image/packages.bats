# Real clients through a box: package managers and git reach what is listed, and are refused the rest.
load helpers

# In front of a program that shall not be told of proxies.
BARE='for name in $(env | grep -io "^[a-z]*_proxy=" | tr -d =); do unset "$name"; done; unset NODE_USE_ENV_PROXY; '

setup() {
  make_project
}

@test "case 13: every allowed service answers by TCP and TLS with a certificate that is verified, over IPv4 and IPv6" {
  (sed -n '/^ALLOWED_SERVICES/,/^)/p' "$ROOT/allowlists/services.sh" | grep -oP '^  "\K[^"]+') >listed
  grep -v '^tcp://' listed >names
  cat >inside <<'INSIDE'
# A proxy that is known has one address, of one family.
unset $(env | grep -io "^[a-z]*_proxy=" | tr -d =)
for family in 4 6; do
  xargs -P 8 -I NAME curl "-$family" -sS -o /dev/null -w "NAME $family %{ssl_verify_result} %{http_code}\n" https://NAME/ <names
done
INSIDE
  run -0 --separate-stderr box -- sh inside </dev/null
  assert_equal "$(wc -l <<<"$output")" $((2 * $(wc -l <names)))
  assert_equal "$(grep -cE ' 0 [1-5][0-9]{2}$' <<<"$output")" $((2 * $(wc -l <names)))
}

@test "case 20: npm installs from the allowed registry, dependencies and all" {
  run -0 box -- sh -c 'npm init -y >/dev/null && npm install --no-audit --no-fund lab-hello && node -p "Object.keys(require(\"./package-lock.json\").packages).join()"' </dev/null
  assert_contains "$output" "node_modules/lab-greeting,node_modules/lab-hello"
}

# Whose name is not allowed does not exist; who goes by the address instead is refused there.
@test "case 20: npm is refused another registry at once, by name and by address" {
  run --separate-stderr box -- sh -c "$BARE"'for host in example.com 93.184.220.34; do npm view lab-hello --registry "https://$host/" --fetch-retries 0 2>&1 | grep "code E"; done' </dev/null
  assert_contains "$(sed -n 1p <<<"$output")" ENOTFOUND
  assert_contains "$(sed -n 2p <<<"$output")" ERR_SSL_TLSV1_ALERT_ACCESS_DENIED
}

@test "case 20: git clones and fetches over HTTPS from a listed host, and is refused another" {
  run -0 box -- sh -c 'git clone -q https://github.com/owner/repo cloned && git -C cloned fetch -q && git -C cloned log --oneline | wc -l' </dev/null
  run -128 box -- sh -c "$BARE"'git clone https://example.com/owner/repo other; git clone https://93.184.220.34/owner/repo other' </dev/null
  assert_contains "$output" "Could not resolve host: example.com"
  assert_contains "$output" "gnutls_handshake() failed: Access was denied"
}

@test "case 18: git clones over SSH from a listed host, on 22 and on 443; SSH to others is refused at once" {
  install -m 600 "$LAB_SSH_KEY" key
  install -m 600 "$LAB_KNOWN_HOSTS" known
  cat >inside <<'INSIDE'
export GIT_SSH_COMMAND="ssh -i $PWD/key -o IdentitiesOnly=yes -o UserKnownHostsFile=$PWD/known -o ConnectTimeout=5"
git clone -q git@github.com:owner/repo one && echo cloned
git clone -q ssh://git@ssh.github.com:443/owner/repo two && echo cloned on 443
ssh -o BatchMode=yes -o ConnectTimeout=5 git@ssh.lab-names.example true 2>&1
ssh -o BatchMode=yes -o ConnectTimeout=5 git@93.184.217.22 true 2>&1
INSIDE
  run --separate-stderr box -- bash inside </dev/null
  assert_contains "$output" $'cloned\ncloned on 443'
  assert_contains "$output" "ssh: Could not resolve hostname ssh.lab-names.example: Name or service not known"
  assert_contains "$output" "ssh: connect to host 93.184.217.22 port 22: Connection refused"
}

@test "case 18: the box's own key is offered, and a host that is not the pinned one is refused" {
  # A home of its own: ssh-init leaves a key there for good.
  local home=$BATS_TEST_TMPDIR/home
  mkdir -p "$home/.agentbox"
  cp "$HOME/.agentbox/image.json" "$home/.agentbox"
  HOME=$home run -0 "$AGENTBOX" ssh-init
  local public
  public=$(grep -o 'ssh-ed25519 [A-Za-z0-9+/=]*' <<<"$output" | head -1)
  [ -n "$public" ]
  # The lab is not GitHub: its key is another one.
  HOME=$home run --separate-stderr box -- sh -c 'cut -d" " -f1,2 ~/.ssh/id_ed25519.pub; ${GIT_SSH_COMMAND:-ssh} -o BatchMode=yes git@github.com true 2>&1; touch ~/.ssh/planted 2>&1' </dev/null
  assert_contains "$output" "$public"
  assert_contains "$output" "REMOTE HOST IDENTIFICATION HAS CHANGED"
  assert_contains "$output" "Read-only file system"
}

@test "case 19: programs that know nothing of proxies reach allowed names and are refused others" {
  echo "$BARE" >inside
  cat >>inside <<'INSIDE'
for host in github.com example.com 93.184.220.34; do
  node -e 'fetch(`https://${process.argv[1]}/`).then((r) => console.log("fetch", process.argv[1], r.status), (e) => console.log("fetch", process.argv[1], e.cause.code))' "$host"
  python3 -c 'import sys, urllib.request as u
try: print("python", sys.argv[1], u.urlopen(f"https://{sys.argv[1]}/", timeout=5).status)
except Exception as e: print("python", sys.argv[1], type(e.reason).__name__)' "$host"
  curl -sS --noproxy '*' -o /dev/null -w "curl $host %{http_code}\n" "https://$host/" 2>/dev/null
  wget -q -O /dev/null "https://$host/"; echo "wget $host $?"
done
INSIDE
  run -0 --separate-stderr box -- bash inside </dev/null
  assert_equal "$output" "$(printf '%s\n' 'fetch github.com 200' 'python github.com 200' 'curl github.com 200' 'wget github.com 0' \
    'fetch example.com ENOTFOUND' 'python example.com gaierror' 'curl example.com 000' 'wget example.com 4' \
    'fetch 93.184.220.34 ERR_SSL_TLSV1_ALERT_ACCESS_DENIED' 'python 93.184.220.34 SSLError' 'curl 93.184.220.34 000' 'wget 93.184.220.34 4')"
}

@test "case 22: a large certificate chain and a large body arrive whole" {
  run -0 --separate-stderr box -- sh -c 'curl -sS https://github.com/bytes/5000000 | wc -c' </dev/null
  assert_equal "$output" 5000000
}
