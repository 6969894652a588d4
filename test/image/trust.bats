# Whose configuration counts: a project's file that widens waits for its owner (case 26), and what an agent
# writes is no configuration (case 25).
load helpers
load orders

setup() { lab POST /reset '{}'; }

widening='[network]\nallow_hosts = ["example.com"]\n'
reach='curl --noproxy \* -sS -o /dev/null https://example.com/'

is_asked_for() {
  make_project_in "$1" "trust-$BATS_TEST_NUMBER"
  printf "$widening" | write_config
  run -78 --separate-stderr configured "$1" run -- sh -c "touch ran; $reach"
  assert_contains "$stderr" "agentbox policy trust"
  assert_contains "$stderr" "example.com"
  [ ! -e ran ]
  run -0 in_topology "$1" policy trust
  assert_contains "$output" "+allow_hosts"
  run -0 configured "$1" run -- sh -c "$reach"
  # Any change asks again, and shows only itself.
  printf '[network]\nallow_hosts = ["example.com", "example.org"]\n' | write_config
  run -78 configured "$1" run -- sh -c 'touch ran'
  assert_contains "$output" "example.org"
  [ ! -e ran ]
}
for topology in container sidecar; do
  bats_test_function --description "case 26 ($topology): a file that widens is refused without a terminal, starts once it is trusted, and is asked for again when changed" -- is_asked_for "$topology"
done

# What a file says | whether it needs trust.
needs=(
  '[network]\nblock_hosts = ["gitlab.com"]\n|no' '[network]\nmode = "none"\n|no' '[network]\n|no'
  '[network]\nallow_hosts = ["example.com"]\n|yes' '[network]\nmode = "full"\n|yes' '[network]\npresets = ["rust"]\n|yes'
  '[network]\nssh = "any"\n|yes' '[network]\nallow_private = ["10.0.0.0/8"]\n|yes' '[network]\ndns = ["8.8.8.8"]\n|yes'
  '[network]\nreport = true\n|yes' '[network]\ntopology = "container"\n|yes' '[network]\ncritical = ["github.com"]\n|yes'
  '[network]\nrules = [{ domain = "example.com", action = "allow" }]\n|yes' '[network]\nallow_hosts = [{ host = "db", ports = [5432], private = true }]\n|yes'
  '[box]\nenv = { A = "1" }\n|yes' '[box]\nadd_dirs = ["/srv"]\n|yes' '[workspace]\nwritable = [".vscode"]\n|yes' '[build]\nbase = "local"\n|yes'
)
@test "case 26: only a file that takes away needs no trust, and it counts" {
  make_project_in container needs
  local row outcome wrong=
  for row in "${needs[@]}"; do
    printf "${row%|*}" | write_config
    outcome=no
    [[ $(in_topology container policy show) == *"is not trusted yet"* ]] && outcome=yes
    [ "$outcome" = "${row##*|}" ] || wrong+="$row got $outcome"$'\n'
  done
  assert_equal "$wrong" ""
  printf "${needs[0]%|*}" | write_config
  run -6 --separate-stderr configured container run -- sh -c 'curl --noproxy \* -sS -o /dev/null https://github.com/ && curl --noproxy \* -sS https://gitlab.com/'
  assert_contains "$(decisions container 'select(.host == "gitlab.com") | .reason')" denied
}

# ANSWER CODE: what is typed at the question, and how the start ends.
is_answered() {
  make_project_in sidecar "answer-$1"
  printf "$widening" | write_config
  local server=agentbox-trust-$BATS_TEST_NUMBER-$$
  tmux -L "$server" -f /dev/null new-session -d -s test -x 100 -y 40 -c "$PROJECT" \
    "env HOME=$HOME '$AGENTBOX' run --network $LAB_NETWORK --dns $LAB_DNS -- sh -c 'touch ran'; echo \$? >code; sleep 20"
  eventually on_screen "Do you trust it?"
  assert_contains "$(tmux -L "$server" capture-pane -p -t test)" 'example.com'
  [ ! -e ran ]
  tmux -L "$server" send-keys -t test "$1" Enter
  eventually test -s code
  assert_equal "$(cat code)" "$2"
  tmux -L "$server" kill-server
  if [ "$2" = 0 ]; then [ -e ran ]; else [ ! -e ran ]; fi
}
on_screen() { tmux -L "$server" capture-pane -p -t test 2>/dev/null | grep -qF -- "$1"; }
bats_test_function --description "case 26: on a terminal the difference is shown, and n refuses" -- is_answered n 78
bats_test_function --description "case 26: on a terminal the difference is shown, and an empty answer refuses" -- is_answered '' 78
bats_test_function --description "case 26: on a terminal the difference is shown, and y starts" -- is_answered y 0

@test "case 26: files that the configuration names are trusted with it, and none that a box may write is taken" {
  make_project_in container named
  printf '[network]\nallow_file = "hosts"\n' | write_config
  echo example.com >.agentbox/hosts
  run -78 configured container run -- true
  assert_contains "$output" "agentbox policy trust"
  in_topology container policy trust
  run -0 configured container run -- sh -c "$reach"
  echo example.org >>.agentbox/hosts
  run -78 configured container run -- true
  assert_contains "$output" "example.org"
  printf '[network]\nallow_file = "../hosts"\n' | write_config
  echo example.com >hosts
  run -78 in_topology container policy trust
  assert_contains "$output" "which boxes may write"
}
