# A start on a real terminal: the launch screen, the hand-over to the agent, and the terminal afterwards.
load helpers

setup() {
  make_project
  SERVER=agentbox-test-$BATS_SUITE_TEST_NUMBER-$$
  RUN="AGENTBOX_FIREWALL=1 $AGENTBOX shell --network $LAB_NETWORK --dns $LAB_DNS"
}

teardown() {
  terminal kill-server 2>/dev/null || true
  lab POST /reset '{}'
}

terminal() { tmux -L "$SERVER" -f /dev/null "$@"; }

# Opens a terminal of 100 × 30 with a plain shell in the project.
open_terminal() {
  terminal new-session -d -s test -x 100 -y 30 -c "$PROJECT" "env PS1='host> ' TERM=tmux-256color bash --norc --noprofile"
  eventually shows 'host>'
}

keys() { terminal send-keys -t test "$@"; }
screen() { terminal capture-pane -p -t test; }
shows() { screen 2>/dev/null | grep -qF -- "$1"; }
shows_not() { ! shows "$1"; }

start_shell() {
  open_terminal
  keys "$RUN${1+ $1}; echo exit=\$?" Enter
  eventually shows 'box:/'
}

@test "the launch screen shows the steps and gives way to the agent, which keeps warnings and the ready line" {
  lab POST /dns '{"registry.gitlab.com":{"delayMs":1200}}'
  open_terminal
  keys "clear; $RUN; echo exit=\$?" Enter
  eventually shows 'resolving'
  assert_contains "$(screen)" "✓ engine"
  assert_contains "$(screen)" "✓ close"
  eventually shows 'of 28'
  eventually shows 'box:/'
  refute_contains "$(screen)" "✓ engine"
  assert_contains "$(screen | tr -s ' \n' '  ')" "everything else is refused; verified"
  keys exit Enter
  eventually shows 'exit=0'
}

@test "the agent has the terminal: its size, its change of size, and the keys" {
  start_shell
  keys 'stty size; tty' Enter
  eventually shows '30 100'
  eventually shows '/dev/pts/0'
  terminal resize-window -t test -x 90 -y 25
  sleep 0.3
  keys 'clear' Enter 'stty size' Enter
  eventually shows '25 90'
  keys 'echo one tw' BSpace 'wo | tr o 0' Enter
  eventually shows '0ne tw0'
  keys 'exit 23' Enter
  eventually shows 'exit=23'
}

@test "case 36: Ctrl-C reaches the agent and ends neither box nor command line" {
  start_shell
  keys 'sleep 100' Enter
  sleep 0.5
  keys C-c
  eventually shows '^C'
  keys 'echo still $((40 + 2))' Enter
  eventually shows 'still 42'
  keys C-d
  eventually shows 'exit=0'
  eventually is_cleared
}

@test "after the box the terminal is as it was found" {
  open_terminal
  keys 'clear; stty -a >before' Enter
  keys "$RUN -- true; echo exit=\$?; stty -a >after" Enter
  eventually shows 'exit=0'
  eventually test -s after
  assert_equal "$(cat after)" "$(cat before)"
  assert_equal "$(terminal display-message -p -t test '#{cursor_flag} #{alternate_on} #{mouse_any_flag}')" "1 0 0"
}

@test "case 36: Ctrl-C while names are resolved ends the start at once with 130 and leaves nothing" {
  lab POST /dns '{"*":{"delayMs":20000}}'
  open_terminal
  keys "$RUN; echo exit=\$?" Enter
  eventually shows 'resolving'
  local started=$SECONDS
  keys C-c
  eventually shows 'exit=130'
  [ $((SECONDS - started)) -lt 6 ]
  assert_contains "$(screen)" "ended by SIGINT; everything was removed"
  eventually is_cleared
}

@test "case 36: a closed terminal ends the box and leaves nothing" {
  start_shell
  keys 'sleep 100' Enter
  terminal kill-server
  eventually is_cleared
}

@test "case 2: a start that fails says why on the screen, and the terminal is the shell's again" {
  lab POST /dns '{"github.com":{"rcode":"NXDOMAIN"}}'
  open_terminal
  keys "$RUN; echo exit=\$?" Enter
  eventually shows 'exit=69'
  assert_contains "$(screen | tr -s ' \n' '  ')" "the critical service github.com:443 does not resolve"
  assert_contains "$(screen)" "✗ resolving"
  keys 'echo back $((1 + 1))' Enter
  eventually shows 'back 2'
  eventually is_cleared
}

@test "a shell of an earlier box is remembered in its history" {
  start_shell
  keys 'echo remember-$((5 + 5))' Enter
  eventually shows 'remember-10'
  keys 'exit' Enter
  eventually shows 'exit=0'
  keys "clear; $RUN; echo exit=\$?" Enter
  eventually shows 'box:/'
  keys 'history | grep -c "remember-.((5"' Enter
  eventually shows '2'
  keys C-d
}
