# What the engine mounts is what the command line planned: an agent in another box of the project can write
# there, and exchange a directory for a link between the plan and the moment when the engine follows it.
load helpers

setup_file() {
  make_project
  git init --quiet
  # A submodule's repository as an agent makes it, with a directory of the project as its hooks.
  mkdir -p sub .git/modules/evil/{objects,refs,hooks}
  echo 'ref: refs/heads/main' >.git/modules/evil/HEAD
  printf '[core]\n\tbare = false\n' >.git/modules/evil/config
  printf 'gitdir: ../.git/modules/evil\n' >sub/.git
  printf '[submodule "sub"]\n\tpath = sub\n\turl = x\n' >.gitmodules
}

setup() {
  PROJECT=$BATS_FILE_TMPDIR/project
  [ -e "$PROJECT" ] || mv "$BATS_FILE_TMPDIR"/project-* "$PROJECT"
  SECRET=$BATS_TEST_TMPDIR/secret
  mkdir -p "$SECRET" "$BATS_TEST_TMPDIR/bin"
  echo hush >"$SECRET/key"
  cd "$PROJECT"
}

# Plays the agent of the other box: runs a script when the engine starts the container, and one right after.
swap_at_start() {
  printf '#!/bin/bash\nif [ "$1" = start ]; then %s\n fi\nexec %q "$@"\n' "$1" "$(command -v docker)" >"$BATS_TEST_TMPDIR/bin/docker"
  chmod +x "$BATS_TEST_TMPDIR/bin/docker"
}

# Runs a box behind that engine; what it can read of the secret would be its output.
run_swapped() {
  local firewall=$1
  run -"$2" --separate-stderr env PATH="$BATS_TEST_TMPDIR/bin:$PATH" AGENTBOX_FIREWALL="$firewall" "$AGENTBOX" run --network "$LAB_NETWORK" --dns "$LAB_DNS" -- \
    sh -c "cat .git/modules/evil/hooks/key sub/key '$SECRET/key'; true"
  refute_contains "$output" hush
}

put_back() {
  rm -rf .git/modules/evil/hooks
  [ ! -e "$BATS_TEST_TMPDIR/old" ] || mv "$BATS_TEST_TMPDIR/old" .git/modules/evil/hooks
}

@test "a box whose mounts nobody exchanges starts, with the firewall and without" {
  swap_at_start :
  local firewall
  for firewall in 0 1; do
    run -0 env PATH="$BATS_TEST_TMPDIR/bin:$PATH" AGENTBOX_FIREWALL=$firewall "$AGENTBOX" run --network "$LAB_NETWORK" --dns "$LAB_DNS" -- touch "ran-$firewall"
    [ -e "ran-$firewall" ]
  done
}

for firewall in 0 1; do
  bats_test_function --description "a guarded directory that becomes a link when the engine starts stops the start, firewall $firewall" -- guarded_link "$firewall"
  bats_test_function --description "a link that is there for the engine only, not for the box, stops the start, firewall $firewall" -- fleeting_link "$firewall"
done

guarded_link() {
  swap_at_start "mv .git/modules/evil/hooks '$BATS_TEST_TMPDIR/old'; ln -s '$SECRET' .git/modules/evil/hooks"
  run_swapped "$1" 70
  put_back
  assert_contains "$stderr" '/.git/modules/evil/hooks" was replaced'
}

# The other agent puts the directory back as soon as the mounts stand, so that a look at it alone finds nothing.
fleeting_link() {
  swap_at_start "mv .git/modules/evil/hooks '$BATS_TEST_TMPDIR/old'; ln -s '$SECRET' .git/modules/evil/hooks
    (while ! docker ps --quiet --no-trunc --filter status=running | grep -q .; do :; done; sleep 0.02; rm .git/modules/evil/hooks; mv '$BATS_TEST_TMPDIR/old' .git/modules/evil/hooks) >/dev/null 2>&1 &"
  run_swapped "$1" 70
  sleep 0.5
  put_back
  assert_contains "$stderr" '/.git/modules/evil/hooks" was replaced'
}
