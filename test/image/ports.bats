# Published ports: for the host, on 127.0.0.1, and for nobody else.
load helpers

setup_file() {
  make_project "$BATS_FILE_TMPDIR/project"
  cp "$ROOT"/test/fixtures/{listen.mjs,reach.mjs} .
  PORT=$("$NODE" -p 'const s = require("node:net").createServer().listen(0, "127.0.0.1"); s.on("listening", () => { console.log(s.address().port); s.close(); }); ""' | grep .)
  export PORT SIBLING_CONTAINER
  SIBLING_CONTAINER=$(docker run --detach --init --network "$LAB_NETWORK" --entrypoint sleep "$IMAGE" 300)
  serve box -p "$PORT:3000"
  serve box_off
}

# Serves in a box and tries from everywhere; what came of it is in the folder of that name.
serve() {
  mkdir "$1"
  "$1" "${@:2}" -- sh -c 'node listen.mjs 3000 4000 >ready & until [ "$(wc -l <ready)" = 2 ]; do sleep 0.05; done; hostname -I >"$0/addresses"; timeout 20 sh -c "until [ -e tried ]; do sleep 0.1; done"' "$1" </dev/null 2>"$1/log" 3>&- &
  file_appears "$1/addresses"
  local v4 v6
  read -r v4 v6 <"$1/addresses"
  docker port "$(holder_of)" >"$1/published" || true
  curl -sS --max-time 5 "http://127.0.0.1:$PORT/" >"$1/host" 2>&1 || true
  for address in $(hostname -I); do
    case $address in *:*) ;; *) curl -sS --max-time 5 "http://$address:$PORT/" >>"$1/elsewhere" 2>&1 || echo "exit code $?" >>"$1/elsewhere" ;; esac
  done
  docker exec --interactive "$SIBLING_CONTAINER" node --input-type=module - "tcp:$v4:3000" "tcp:[$v6]:3000" "tcp:$v4:4000" <reach.mjs >"$1/sibling"
  touch tried
  wait %1
  rm -f tried ready
}

teardown_file() {
  end_background
  docker rm --force "$SIBLING_CONTAINER" >/dev/null
}

setup() { cd "$BATS_FILE_TMPDIR/project"; }

@test "case 21: a published port is reached from the host with the firewall on" {
  assert_equal "$(cat box/host)" listening
  assert_contains "$(cat box/log)" "everything else is refused; verified"
}

@test "case 21: -p binds 127.0.0.1 alone unless an address is written" {
  assert_equal "$(cat box/published)" "3000/tcp -> 127.0.0.1:$PORT"
  refute_contains "$(cat box/elsewhere)" listening
}

@test "case 21: siblings reach neither the published port nor another, though without the firewall they do" {
  assert_equal "$(jq -c 'map(.outcome)' box_off/sibling)" '["connected","connected","connected"]'
  assert_equal "$(jq -c 'map(.outcome)' box/sibling)" '["ECONNREFUSED","ECONNREFUSED","ECONNREFUSED"]'
}

@test "case 21: without -p nothing of a box is on the host" {
  assert_equal "$(cat box_off/published)" ""
  assert_contains "$(cat box_off/host)" "Failed to connect"
}

@test "case 21: a port that is taken is named with a remedy" {
  make_project
  "$NODE" "$ROOT/test/fixtures/listen.mjs" "$PORT" >listening 3>&- &
  eventually test -s listening
  run -69 box -p "$PORT" -- true </dev/null
  end_background
  assert_contains "$output" "fix: choose another port for -p"
  assert_equal "$(containers_of)" ""
}
