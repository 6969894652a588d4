# Files that a box makes belong to the user who started it, whoever that is; and the real agents start.
load helpers

setup_file() {
  [ "$(id -u)" = 0 ] || skip "other users' boxes can be started by root only"
}

setup() {
  make_project
}

# What a box of a user makes and says.
INSIDE='set -e; id -u; id -g; touch made; mkdir directory; printf x >directory/inner; umask; touch ~/own ~/.cache/own; npm config get cache; python3 -c "import tempfile; tempfile.mkstemp()"; git config --list >/dev/null; whoami'

belongs_to() {
  local uid=$1 gid=$2 project
  project=$(mktemp -d "$USERS/projects-$uid/owned-XXXXXX")
  chown "$uid:$gid" "$project"
  cd "$project"
  run -0 --separate-stderr user_box "$uid" "$gid" run -- sh -c "$INSIDE" </dev/null
  assert_equal "$output" "$(printf '%s\n' "$uid" "$gid" 0022 /home/agent/.cache/npm agent)"
  assert_equal "$(stat -c %u:%g made directory directory/inner | sort -u)" "$uid:$gid"
  assert_equal "$(ls -A)" $'directory\nmade'
}
bats_test_function --description "case 34: files of a box of user 1000:1000 belong to 1000:1000" -- belongs_to 1000 1000
bats_test_function --description "case 34: files of a box of user 1001:1001 belong to 1001:1001" -- belongs_to 1001 1001
bats_test_function --description "case 34: files of a box of user 501:20, as on a Mac, belong to 501:20" -- belongs_to 501 20

@test "case 34: files of a box of root belong to root" {
  run -0 --separate-stderr box -- sh -c "$INSIDE" </dev/null
  assert_equal "$output" "$(printf '%s\n' 0 0 0022 /home/agent/.cache/npm root)"
  assert_equal "$(stat -c %u:%g made directory directory/inner | sort -u)" 0:0
}

@test "case 34: two users' boxes in one directory share neither home nor caches" {
  local project=$USERS/projects-shared
  install -d -m 777 "$project"
  cd "$project"
  chmod 755 "$USERS"
  run -0 --separate-stderr user_box 1000 1000 run -- sh -c 'echo secret >~/note; echo secret >~/.cache/note' </dev/null
  run -0 --separate-stderr user_box 1001 1001 run -- sh -c 'ls ~/note ~/.cache/note 2>&1; true' </dev/null
  refute_contains "$output" $'\n/home/agent/note'
  assert_contains "$output" "No such file or directory"
}

@test "case 35: home and caches of a project are there again in its next box, and in no other project's" {
  run -0 box -- sh -c 'echo kept >~/note; echo kept >~/.cache/note' </dev/null
  run -0 --separate-stderr box -- cat /home/agent/note /home/agent/.cache/note </dev/null
  assert_equal "$output" $'kept\nkept'
  make_project
  run -1 --separate-stderr box -- cat /home/agent/note </dev/null
}

agent_starts() {
  local agent=$1 pattern=$2
  AGENTBOX_FIREWALL=1 run -0 --separate-stderr "$AGENTBOX" "$agent" --network "$LAB_NETWORK" --dns "$LAB_DNS" -- --version </dev/null
  [[ $output =~ $pattern ]]
  assert_contains "$stderr" "everything else is refused; verified"
}
bats_test_function --description "the real claude starts in its firewalled box, as root" -- agent_starts claude '^[0-9]+\.[0-9]+\.[0-9]+ \(Claude Code\)$'
bats_test_function --description "the real codex starts in its firewalled box, as root" -- agent_starts codex '^codex(-cli)? [0-9]+\.[0-9]+\.[0-9]+'

agent_starts_for_user() {
  local agent=$1 pattern=$2
  cd "$(mktemp -d "$USERS/projects-1000/agent-XXXXXX")"
  chown 1000:1000 .
  run -0 --separate-stderr user_box 1000 1000 "$agent" -- --version </dev/null
  [[ $output =~ $pattern ]]
}
bats_test_function --description "the real claude starts in its firewalled box, as an ordinary user" -- agent_starts_for_user claude '^[0-9]+\.[0-9]+\.[0-9]+ \(Claude Code\)$'
bats_test_function --description "the real codex starts in its firewalled box, as an ordinary user" -- agent_starts_for_user codex '^codex(-cli)? [0-9]+\.[0-9]+\.[0-9]+'
