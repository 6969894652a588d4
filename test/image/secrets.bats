# What the proxy of a box knows and its agent must not (decision 36, interception): the key that opens TLS, the password
# of the site's proxy. And what the agent's programs need of it: a bundle, variables, a way out through that proxy.
load helpers
load orders

setup() { lab POST /reset '{}'; }
teardown() {
  [ -z "${PROJECT-}" ] || touch "$PROJECT/over"
  end_background
  [ -z "${SITE_PROXY-}" ] || docker rm --force "$SITE_PROXY" >/dev/null
  [ -z "${OWN-}" ] || rm -f "$OWN/config.toml"
}

file=/var/lib/agentbox-keeper/log/proxy-secrets.json

# open_site_proxy: a proxy of the site's that asks for a password, in a container beside the boxes; sets SITE_PROXY and SITE_ADDRESS.
open_site_proxy() {
  SITE_PROXY=$(docker run --detach --rm --network "$LAB_NETWORK" --dns "$LAB_DNS" --entrypoint /usr/local/bin/node "$IMAGE" -e '
    const { connect } = require("node:net");
    require("node:http").createServer((request, response) => response.writeHead(400).end()).on("connect", (request, socket) => {
      console.log(request.method, request.url, request.headers["proxy-authorization"] ?? "nobody");
      const [host, port] = request.url.split(":");
      if (request.headers["proxy-authorization"] !== "Basic " + btoa("ada:s3cret")) return socket.end("HTTP/1.1 407 No\r\n\r\n");
      const upstream = connect(port, host, () => { socket.write("HTTP/1.1 200 OK\r\n\r\n"); upstream.pipe(socket).pipe(upstream); });
      upstream.on("error", () => socket.destroy());
      socket.on("error", () => upstream.destroy());
    }).listen(3128)')
  SITE_ADDRESS=$(docker inspect "$SITE_PROXY" | jq -r --arg network "$LAB_NETWORK" '.[0].NetworkSettings.Networks[$network].IPAddress')
  eventually docker exec "$SITE_PROXY" /usr/local/bin/node -e 'require("node:net").connect(3128, "127.0.0.1").on("connect", () => process.exit(0)).on("error", () => process.exit(1))'
}

# behind_site_proxy TOPOLOGY: the user's own configuration, which no box sees, has boxes leave through it and opens TLS.
behind_site_proxy() {
  OWN=$(home_in "$1")/.agentbox
  install -d -m 700 "$OWN"
  printf '[network]\nallow_hosts = ["example.com"]\n[network_proxy]\nupstream_proxy = "http://ada:s3cret@%s:3128"\n[network_proxy.mitm]\nenabled = true\n' "$SITE_ADDRESS" >"$OWN/config.toml"
  [ "$1" = sidecar ] || chown -R 1000:1000 "$OWN"
}

keeps_secrets() {
  local container
  open_site_proxy
  make_project_in "$1" "kept-$BATS_TEST_NUMBER"
  behind_site_proxy "$1"
  open_box "$1"

  # The proxy reads it: that it cannot be read is for others.
  run -0 docker exec --user 64990:64990 "$(holder_of)" cat "$file"
  assert_contains "$output" "PRIVATE KEY"
  assert_contains "$output" "s3cret"

  assert_contains "$(order "cat $file")" "Permission denied"
  refute_contains "$(docker inspect "$(agent_of)" | jq -r '.[].Mounts[].Source')" "$([ "$1" = container ] && echo nowhere || echo /log)"
  assert_equal "$(order "cat /proc/[0-9]*/root$file /proc/[0-9]*/cwd/log/proxy-secrets.json 2>/dev/null")" "exit 1"
  assert_equal "$(order 'for fd in /proc/[0-9]*/fd/*; do readlink "$fd"; done 2>/dev/null | grep -c proxy-secrets')" $'0\nexit 1'
  assert_equal "$(order "find / -name 'proxy-secrets*' 2>/dev/null; echo")" $'\nexit 0'
  assert_equal "$(order "grep -rlsa --exclude-dir=orders -e 'PRIVATE KEY-----' -e s3cret /run /var /tmp /home 2>/dev/null | grep -v ^/var/lib/dpkg")" "exit 1"
  assert_equal "$(order "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -ac 's[3]cret'")" $'0\nexit 1'
  # Nor can it be put where it would be read.
  assert_contains "$(order "ln $file stolen; ln -s $file linked; cat linked; mv $file stolen; ls stolen")" "exit 2"
  for container in $(containers_of); do
    refute_contains "$(docker inspect "$container")" s3cret
    refute_contains "$(docker inspect "$container")" "PRIVATE KEY"
    # Root of a box has no capability to enter the keeper's directory.
    run ! docker exec --user 0 "$container" cat "$file"
    run -0 docker exec --user 0 "$container" cat /run/agentbox/box.json
    refute_contains "$output" s3cret
  done
  close_box
  refute_contains "$(cat box.log box.out)" s3cret
  local session
  session=$(home_in "$1")/.agentbox/sessions/$(session_id "$1")
  assert_equal "$(ls "$session/log" | grep -v "^decisions.pending")" "decisions.jsonl"
  run ! grep -r s3cret "$session"
}

leaves_through_it() {
  open_site_proxy
  make_project_in "$1" "site-$BATS_TEST_NUMBER"
  behind_site_proxy "$1"
  # The start has asked the critical services through it.
  open_box "$1"
  assert_contains "$(docker logs "$SITE_PROXY")" "CONNECT api.anthropic.com:443 Basic"
  assert_equal "$(order 'curl --noproxy "*" -sS -o /dev/null -w "%{http_code}\n" https://example.com/; curl -sS -o /dev/null -w "%{http_code}\n" https://example.com/')" $'200\n200\nexit 0'
  assert_contains "$(docker logs "$SITE_PROXY")" "CONNECT example.com:443 Basic"
  # It lets its clients out everywhere. The agent is none of them: neither directly nor by the box's own proxy.
  run -0 docker exec "$SITE_PROXY" /usr/local/bin/node -e 'require("node:http").request({ port: 3128, method: "CONNECT", path: "evil.example.net:443", headers: { "proxy-authorization": "Basic " + btoa("ada:s3cret") } }).on("connect", ({ statusCode }) => { console.log(statusCode); process.exit() }).end()'
  assert_equal "$output" 200
  assert_contains "$(order "curl -sS --connect-timeout 3 -x http://ada:s3cret@$SITE_ADDRESS:3128 https://evil.example.net/")" "Failed to connect to $SITE_ADDRESS port 3128"
  assert_contains "$(order "curl -sS --proxytunnel -x http://127.0.0.1:3128 http://$SITE_ADDRESS:3128/")" "response 403"
  assert_equal "$(order "curl --noproxy '*' -sS -o /dev/null -w '%{http_code}\n' http://$SITE_ADDRESS/")" $'403\nexit 0'
  refute_contains "$(docker logs "$SITE_PROXY" | grep -v evil.example.net)" "$SITE_ADDRESS"
  logged "$1" ".protocol == \"address\" and .host == \"$SITE_ADDRESS\" and .port == 3128 and .action == \"deny\""
}

for topology in container sidecar; do
  bats_test_function --description "interception ($topology): the key that opens TLS and the password of the site's proxy are in one file, which no agent reads by any path" -- keeps_secrets "$topology"
  bats_test_function --description "case 38 ($topology): the box leaves through the site's proxy, and nobody but its own proxy reaches that" -- leaves_through_it "$topology"
done
