# A box as one command among others in a shell: streams, arguments and exit codes.
load helpers

setup() { make_project; }

@test "case 32: without a terminal stdout is the command's alone, and so is the exit code" {
  run -37 --separate-stderr box -- sh -c 'echo out; echo err >&2; tty >&2; exit 37' </dev/null
  assert_equal "$output" out
  assert_contains "$stderr" $'verified'
  assert_contains "$stderr" $'err\nnot a tty'
}

@test "case 32: it works in a pipeline" {
  set -o pipefail
  run -0 bash -c 'set -o pipefail; cd "$0" && AGENTBOX_FIREWALL=1 "$AGENTBOX" run --network "$LAB_NETWORK" --dns "$LAB_DNS" -- echo through </dev/null 2>/dev/null | cat' "$PWD"
  assert_equal "$output" through
}

exits_with() { run "-$1" box -- "${@:2}" </dev/null; }
bats_test_function --description "case 32: exit code 0 passes through" -- exits_with 0 true
bats_test_function --description "case 32: exit code 1 passes through" -- exits_with 1 false
bats_test_function --description "case 32: a missing command is 127" -- exits_with 127 no-such-command
bats_test_function --description "case 32: a file that cannot be executed is 126" -- exits_with 126 /etc/passwd
bats_test_function --description "case 32: a command ended by SIGKILL is 137" -- exits_with 137 sh -c 'kill -9 $$'

@test "case 32: stdin reaches the command and its end does, too; nothing is changed on the way" {
  head -c 3000000 /dev/urandom >sent
  box -- sh -c 'tee copy' <sent >received 2>/dev/null
  cmp sent received
  cmp sent copy
}

@test "case 32: a reader that goes away ends the box" {
  timeout 20 bash -c 'cd "$0" && AGENTBOX_FIREWALL=0 "$AGENTBOX" run --network "$LAB_NETWORK" -- yes 2>/dev/null </dev/null | head -1' "$PWD" >first
  assert_equal "$(cat first)" y
  eventually is_cleared
}

@test "case 33: arguments with spaces, quotes, expansions, newlines and leading dashes arrive unchanged" {
  local words=(' ' '' "it's" '"' '$(touch planted)' '`touch planted`' '$HOME' $'two\nlines' -x --network --help -- 'a=b' '\' '*' 'é' '{"a": [1]}')
  run -0 --separate-stderr box -- node -p 'JSON.stringify(process.argv.slice(1))' -- "${words[@]}" </dev/null
  assert_equal "$output" "$(jq -nc '$ARGS.positional' --args -- "${words[@]}")"
  [ ! -e planted ]
}

@test "case 33: a program whose name holds = and spaces is started, not taken for a variable" {
  printf '#!/bin/sh\necho "ran $1"\n' >'a=b c'
  chmod +x 'a=b c'
  run -0 --separate-stderr box -- './a=b c' 'x y' </dev/null
  assert_equal "$output" "ran x y"
}

json_steps() {
  local topology=$1 steps=$2
  make_project_in "$topology" json
  AGENTBOX_LOG=json run -0 --separate-stderr firewalled "$topology" -- echo out </dev/null
  assert_equal "$output" out
  assert_equal "$(jq -rs 'map(select(.event == "done").step) | join(" ")' <<<"$stderr")" "$steps"
  assert_equal "$(jq -rs 'last.event' <<<"$stderr")" ready
}
bats_test_function --description "case 32 (container): with AGENTBOX_LOG=json all of stderr is JSON lines, step by step" -- json_steps container "engine image kernel close allowlist resolver resolving validation"
bats_test_function --description "case 32 (sidecar): with AGENTBOX_LOG=json all of stderr is JSON lines, step by step" -- json_steps sidecar "engine image kernel close allowlist resolver resolving validation firewall gate"

@test "all mistakes of a command line are told at once, with exit code 64" {
  run -64 agentbox_with_mistakes
  assert_contains "$output" '"99999"'
  assert_contains "$output" '"nowhere"'
  assert_contains "$output" '--nope'
  assert_contains "$output" 'no/dir'
}
agentbox_with_mistakes() { "$AGENTBOX" run -p 99999 --dns nowhere --nope --add-dir no/dir -- true; }

@test "run without a command is refused with 64, an agent that does not exist with the nearest one" {
  run -64 "$AGENTBOX" run
  assert_contains "$output" "agentbox run -- COMMAND"
  run -64 "$AGENTBOX" cluade
  assert_contains "$output" "claude"
}
