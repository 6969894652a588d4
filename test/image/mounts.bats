# What the engine mounts is what the command line planned: an agent in another box of the project can write
# there, and exchange a directory for a link between the plan and the moment when the engine follows it.
load helpers

setup_file() {
  make_project
  git init --quiet
  git commit --quiet --allow-empty -m first
  git worktree add --quiet "$BATS_FILE_TMPDIR/other"
}

setup() {
  PROJECT=$BATS_FILE_TMPDIR/project
  [ -e "$PROJECT" ] || mv "$BATS_FILE_TMPDIR"/project-* "$PROJECT"
  SECRET=$BATS_TEST_TMPDIR/secret
  mkdir -p "$SECRET" "$BATS_TEST_TMPDIR/bin"
  echo hush >"$SECRET/key"
  cd "$PROJECT"
}

# Plays the agent of the other box: the engine's client first runs a piece of shell when it is to start a box.
swap_at_start() {
  printf '#!/bin/bash\nif [ "$1" = start ]; then %s\n fi\nexec %q "$@"\n' "$1" "$(command -v docker)" >"$BATS_TEST_TMPDIR/bin/docker"
  chmod +x "$BATS_TEST_TMPDIR/bin/docker"
}

# swapped_box FIREWALL COMMAND…
swapped_box() {
  local firewall=$1
  shift
  env PATH="$BATS_TEST_TMPDIR/bin:$PATH" AGENTBOX_FIREWALL="$firewall" "$AGENTBOX" run --network "$LAB_NETWORK" --dns "$LAB_DNS" -- "$@"
}

# expect_refusal FIREWALL PATH: the box does not start, says why, and shows nothing of the secret.
expect_refusal() {
  run -70 --separate-stderr swapped_box "$1" sh -c "cat '$2/key' '$SECRET/key'; true"
  sleep 0.3
  [ ! -L "$2" ] || rm "$2"
  [ ! -e "$BATS_TEST_TMPDIR/old" ] || mv "$BATS_TEST_TMPDIR/old" "$2"
  assert_equal "$output" ""
  assert_contains "$stderr" "/$2\" was replaced"
}

@test "a box whose mounts nobody exchanges starts, with the firewall and without" {
  swap_at_start :
  local firewall
  for firewall in 0 1; do
    swapped_box "$firewall" touch "ran-$firewall"
    [ -e "ran-$firewall" ]
  done
}

# The entry of a worktree elsewhere is not watched on the host; the repository's hooks are.
for firewall in 0 1; do
  for path in .git/worktrees/other .git/hooks; do
    bats_test_function --description "$path that becomes a link before the engine starts the box stops it, firewall $firewall" -- lasting_link "$firewall" "$path"
    bats_test_function --description "$path that is a link while the engine mounts, and never later, stops it, firewall $firewall" -- fleeting_link "$firewall" "$path"
  done
done

lasting_link() {
  swap_at_start "mv '$2' '$BATS_TEST_TMPDIR/old'; ln -s '$SECRET' '$2'; sleep 0.7"
  expect_refusal "$1" "$2"
}

# Put back as soon as the mounts stand: whoever only looks at the path afterwards finds the planned directory.
fleeting_link() {
  swap_at_start "mv '$2' '$BATS_TEST_TMPDIR/old'; ln -s '$SECRET' '$2'
    (for try in {1..500}; do docker top \"\${@: -1}\" && break; sleep 0.01; done; rm '$2'; mv '$BATS_TEST_TMPDIR/old' '$2') >/dev/null 2>&1 &"
  expect_refusal "$1" "$2"
}
