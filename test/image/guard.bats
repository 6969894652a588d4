# The file guard's server on the host, reached from a box by its socket: what it grants is not mounted there.
load helpers
load orders

setup() { export AGENTBOX_FIREWALL=1; }
teardown() {
  touch "$PROJECT/over"
  end_background
}

reached_by_its_socket() {
  make_project_in "$1" guard
  local folder place=$PWD.guard
  mkdir -p "$place/granted"
  chmod 700 "$place"
  folder=$place/granted
  echo "kept on the host" >"$folder/note.txt"
  cp "$ROOT/test/fixtures/mcp-bridge.mjs" .
  [ "$1" = sidecar ] || chown -R 1000:1000 "$place" .
  in_topology "$1" mcp --session "guard-$1" --grant "$folder:rw" --socket "$place/mcp.sock" >server.log 2>&1 </dev/null 3>&- &
  eventually test -S "$place/mcp.sock" || { cat server.log >&2; return 1; }
  # Beside it a socket that nobody listed.
  in_topology "$1" mcp --session "other-$1" --grant "$folder:r" --socket "$place/other.sock" >other.log 2>&1 </dev/null 3>&- &
  eventually test -S "$place/other.sock" || { cat other.log >&2; return 1; }
  trusted_config "$1" <<<$'[network_proxy]\n[network_proxy.policy]\nallow_unix_sockets = ["'"$place"'/mcp.sock"]'
  open_box "$1"
  local said
  said=$(order "node mcp-bridge.mjs '$place/mcp.sock' '$folder'; cat '$folder/note.txt'; ls '$place'; node mcp-bridge.mjs '$place/other.sock' '$folder'")
  echo "$said" >&2
  assert_contains "$said" "done kept on the host"
  assert_contains "$said" "done Wrote 13 bytes"
  assert_contains "$said" "refused"
  assert_contains "$said" "cat: $folder/note.txt: No such file or directory"
  assert_contains "$said" "no socket: ENOENT"
  assert_equal "$(cat "$folder/from-box.txt")" "by the guard"
  run -0 in_topology "$1" audit show "guard-$1"
  assert_contains "$output" /etc/shadow
  run -0 in_topology "$1" audit verify "guard-$1"
  close_box
}

for topology in container sidecar; do
  bats_test_function --description "the file guard ($topology): its socket works in a box, its folders are not there, and another socket is not either" -- reached_by_its_socket "$topology"
done
