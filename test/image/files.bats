# What the host executes or obeys later is read-only in a box, and everything else of the project is the agent's.
load helpers

attacks() { cut -f1 "${BATS_TEST_DIRNAME:-test/image}/../fixtures/file-attacks.tsv"; }

setup_file() {
  make_project "$BATS_FILE_TMPDIR/project"
  make_repository
  mkdir .vscode .claude .agentbox
  echo '{ }' >.vscode/settings.json
  echo '{"a":1}' >.claude/settings.json
  echo '# policy' >.agentbox/config.toml
  git add -A
  git commit -q --amend --no-edit
  cp "$ROOT/test/fixtures/file-attacks.tsv" attacks.tsv
  cp -a . "$BATS_FILE_TMPDIR/pristine"
  fingerprint . >"$BATS_FILE_TMPDIR/before"
  cat >inside <<'INSIDE'
while IFS='	' read -r name attack; do
  if sh -c "$attack" </dev/null >out 2>&1; then result=done; else result=refused; fi
  printf '%s\t%s\n' "$name" "$result $(tr '\n' ' ' <out)"
done <attacks.tsv >answers
rm -f c s p out linked; rm -rf evil
echo two >>file && echo new >new && git add file new && git commit -qm second && git gc -q && git log --oneline | wc -l >commits
git status --short .git .vscode .claude .agentbox .devcontainer >status
INSIDE
  box -- sh inside </dev/null 2>log
  fingerprint . >"$BATS_FILE_TMPDIR/after"
}

setup() { cd "$BATS_FILE_TMPDIR/project"; }
teardown() { end_background; }

make_repository() {
  git init -q
  echo one >file
  git add file
  git commit -qm first
}

# What the host runs or obeys, and that nothing was added.
fingerprint() {
  (cd "$1" && find .git/config .git/hooks .git/commondir .git/config.worktree .vscode .devcontainer .claude .agentbox ! -type d -exec sha256sum {} + 2>/dev/null | sort -k2)
}

is_refused() {
  assert_equal "$(answer answers "$1" | cut -d' ' -f1)" refused
  # The control: on a copy without protection the same line works.
  local copy="$BATS_TEST_TMPDIR/copy" attack
  cp -a "$BATS_FILE_TMPDIR/pristine" "$copy"
  attack=$(answer attacks.tsv "$1")
  (cd "$copy" && sh -c "$attack")
}

while read -r name; do
  bats_test_function --description "case 28: an agent that $name is refused" -- is_refused "$name"
done < <(attacks)

@test "case 28: after the box everything that the host obeys is as it was, and nothing was added" {
  assert_equal "$(cat "$BATS_FILE_TMPDIR/after")" "$(cat "$BATS_FILE_TMPDIR/before")"
  [ ! -e .devcontainer ]
  [ ! -e .git/commondir ]
  [ ! -e .claude/settings.local.json ]
  git status >/dev/null
}

@test "case 28: ordinary files are the agent's, and it commits" {
  assert_equal "$(cat commits)" 2
  assert_equal "$(git log -1 --format='%s by %an')" "second by Box Tester"
  assert_equal "$(cat file)" $'one\ntwo'
  assert_equal "$(cat status)" ""
}

@test "case 28: a directory without a repository cannot be made one" {
  make_project
  run -0 box -- sh -c 'git init 2>&1; touch ok' </dev/null
  assert_contains "$output" "Read-only file system"
  assert_equal "$(ls -A)" ok
}

@test "case 28: git gc and git worktree prune in a box spare the host's worktrees" {
  make_project
  make_repository
  git worktree add -q "$BATS_TEST_TMPDIR/other"
  run -0 box -- sh -c 'git worktree prune --expire now; git gc -q --prune=now && echo collected' </dev/null
  assert_contains "$output" collected
  assert_equal "$(git worktree list | wc -l)" 2
  git -C "$BATS_TEST_TMPDIR/other" status --short
}

@test "case 37: a linked worktree works at its own path" {
  make_project "$BATS_TEST_TMPDIR/main"
  make_repository
  git worktree add -q "$BATS_TEST_TMPDIR/linked"
  cd "$BATS_TEST_TMPDIR/linked"
  run -0 box -- sh -c 'echo w >w && git add w && git commit -qm inside && git log --oneline | wc -l; echo x >>"$(git rev-parse --git-common-dir)/config" || true' </dev/null
  assert_contains "$output" "2"
  assert_contains "$output" "Read-only file system"
  assert_equal "$(git log -1 --format=%s)" inside
}

@test "case 28: a protected file that the host replaces ends the box, with the reason" {
  make_project
  make_repository
  box -- sh -c 'touch up; exec sleep 60' </dev/null >log 2>&1 3>&- &
  file_appears up
  git config changed.by host
  local code=0
  wait %1 || code=$?
  assert_equal "$code" 70
  assert_contains "$(cat log)" "$PWD/.git/config\" was replaced on the host"
  assert_equal "$(containers_of)" ""
}

@test "case 28: another directory is mounted only when it is asked for, at its own path" {
  make_project
  mkdir "$BATS_TEST_TMPDIR/other dir"
  echo there >"$BATS_TEST_TMPDIR/other dir/file"
  run -1 box -- cat "$BATS_TEST_TMPDIR/other dir/file" </dev/null
  assert_contains "$output" "No such file or directory"
  run -0 --separate-stderr box --add-dir "$BATS_TEST_TMPDIR/other dir" -- sh -c 'cat "$0/file" && echo back >"$0/file"' "$BATS_TEST_TMPDIR/other dir" </dev/null
  assert_equal "$output" there
  assert_equal "$(cat "$BATS_TEST_TMPDIR/other dir/file")" back
}

refuses_to_start_in() {
  cd "$1"
  run box -- true </dev/null
  [ "$status" = 64 ] || [ "$status" = 78 ] || { echo "exit code $status" >&2; return 1; }
  assert_contains "$output" "$2"
  assert_contains "$output" "fix:"
}
bats_test_function --description "case 37: the root of the file system is refused as a project" -- refuses_to_start_in / "is the root of the file system"
bats_test_function --description "case 37: a system directory is refused as a project" -- refuses_to_start_in /etc "would hide the box's own /etc"
bats_test_function --description "case 37: a system file system is refused as a project" -- refuses_to_start_in /proc/sys "lies in the system directory /proc"

@test "case 37: the home directory and what holds ~/.agentbox are refused as projects" {
  refuses_to_start_in "$HOME" "is your home directory"
  refuses_to_start_in "$(dirname "$HOME")" "holds AgentBox's own directory"
  refuses_to_start_in "$HOME/.agentbox" "AgentBox's own directory"
}

@test "case 37: a directory with keys is added only with --yes-secrets" {
  make_project
  mkdir -p "$BATS_TEST_TMPDIR/.ssh"
  run box --add-dir "$BATS_TEST_TMPDIR/.ssh" -- true </dev/null
  [ "$status" -ne 0 ]
  assert_contains "$output" "--yes-secrets"
  run -0 box --add-dir "$BATS_TEST_TMPDIR/.ssh" --yes-secrets -- test -d "$BATS_TEST_TMPDIR/.ssh" </dev/null
}
