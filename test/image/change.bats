# A policy that changes while boxes run (cases 29, 30), and what is said about it beforehand (case 31).
load helpers
load orders

setup() { lab POST /reset '{}'; }
teardown() { [ -z "${PROJECT-}" ] || touch "$PROJECT/over"; end_background; }

probe='for host in example.com example.org gitlab.com; do curl --noproxy \* -sS -o /dev/null --connect-timeout 3 https://$host/ 2>/dev/null; echo "$host $?"; done'

# Two boxes of one project: the first takes orders, the second says again and again what it reaches.
both_take_it() {
  make_project_in "$1" "change-$BATS_TEST_NUMBER"
  cat <<'TOML' | trusted_config "$1"
# what this project needs
[network]
allow_hosts = [
  "example.net", # the reason
]
TOML
  open_box "$1"
  local first=$BOX
  configured "$1" run -- sh -c 'until [ -e over ]; do '"$probe"' >second.part 2>&1; mv second.part second.out; sleep 0.1; done' >second.log 2>&1 </dev/null 3>&- &
  local second=$!
  eventually test -e second.out
  assert_equal "$(order "$probe")" $'example.com 6\nexample.org 6\ngitlab.com 0\nexit 0'
  assert_contains "$(cat second.out)" "example.com 6"

  run -0 in_topology "$1" policy allow example.com
  assert_contains "$(order "$probe")" "example.com 0"
  eventually grep -q "example.com 0" second.out
  logged "$1" '.event == "policy-replaced" and (.added | tostring | contains("example.com"))'
  # For a session: nothing in the file, and nothing in a box that starts later.
  refute_contains "$(cat .agentbox/config.toml)" "example.com"
  run -6 configured "$1" run -- curl --noproxy \* -sS https://example.com/

  run -0 in_topology "$1" policy allow --always example.org
  assert_contains "$(order "$probe")" "example.org 0"
  eventually grep -q "example.org 0" second.out
  assert_equal "$(cat .agentbox/config.toml)" $'# what this project needs\n[network]\nallow_hosts = [\n  "example.net", # the reason\n  "example.org",\n]'
  # Who typed it agreed to it.
  run -0 configured "$1" run -- curl --noproxy \* -sS -o /dev/null https://example.org/

  run -0 in_topology "$1" policy deny gitlab.com
  assert_contains "$(order "$probe")" "gitlab.com 6"
  eventually grep -q "gitlab.com 6" second.out
  touch over
  wait "$first" "$second" || true
}

for_once() {
  make_project_in "$1" "once-$BATS_TEST_NUMBER"
  write_config <<<'[network]'
  open_box "$1"
  run -0 in_topology "$1" policy allow --once example.com
  assert_contains "$(order "$probe")" "example.com 0"
  assert_contains "$(in_topology "$1" policy show)" "may also reach example.com (until "
  refute_contains "$(cat .agentbox/config.toml)" example.com
  # A minute is long for a test: the session's own note of it is moved to its end instead.
  assert_equal "$(jq '.allow[0].until - now * 1000 | . > 30000 and . < 61000' "$(home_in "$1")/.agentbox/sessions/$(session_id "$1")"/*overlay*.json)" true
}

# tries HOST PORT: asks for it as a client of that port does, and prints curl's exit code: 6 no such name, 7 refused by the
# kernel, 22 an answer of 400 and above, 35 refused in TLS.
tries() {
  case $2 in
    443) echo "curl --noproxy \* -sS -k -o /dev/null --connect-timeout 3 https://$1/ 2>/dev/null; echo \$?" ;;
    80) echo "curl --noproxy \* -sS --fail -o /dev/null --connect-timeout 3 http://$1/ 2>/dev/null; echo \$?" ;;
    *) echo "node -e 'require(\"net\").connect($2, \"$1\").on(\"connect\", () => { console.log(0); process.exit() }).on(\"error\", ({ code }) => console.log(code === \"ENOTFOUND\" ? 6 : 7))'" ;;
  esac
}

# The verdict of explain, the list of a dry run, and what happens in the box.
names=(github.com api.anthropic.com gitlab.com pypi.org x.pythonhosted.org example.com www.example.com example.org evil.example.net below.evil.example.net dns.google blocked.example.com registry.npmjs.org:80 example.com:8443 example.org:443 8.8.8.8 93.184.220.35)
all_agree() {
  make_project_in "$1" "agree-$BATS_TEST_NUMBER"
  cat <<'TOML' | trusted_config "$1"
[network]
allow_hosts = ["*.example.com", "example.com:8443", "93.184.220.35"]
block_hosts = ["pypi.org", "blocked.*"]
TOML
  open_box "$1"
  local name host port said did wrong=
  for name in "${names[@]}"; do
    host=${name%:*} port=443
    [ "$host" = "$name" ] || port=${name##*:}
    said=$(in_topology "$1" policy explain --json "$host:$port" | jq -r .action)
    did=$(order "$(tries "$host" "$port")" | head -1)
    case $said:$did in allow:0 | deny:6 | deny:7 | deny:22 | deny:35) ;; *) wrong+="$name: explain says $said, the box $did"$'\n' ;; esac
  done
  assert_equal "$wrong" ""
}

@test "case 31: a dry run lists what policy show lists and the rules of the kernel, and starts nothing" {
  make_project_in sidecar dry
  trusted_config sidecar <<<$'[network]\nallow_hosts = ["example.com:8443", "93.184.220.35"]\nblock_hosts = ["pypi.org"]'
  run -0 configured sidecar run --dry-run -- touch ran
  local dry=$output entry
  assert_contains "$dry" "example.com:8443"
  assert_contains "$dry" "AGENTBOX-OUT"
  assert_contains "$dry" "93.184.220.35"
  run -0 in_topology sidecar policy show --json
  while read -r entry; do assert_contains "$dry" "allow $entry"; done < <(jq -r '.entries[].text | ltrimstr("tcp://")' <<<"$output")
  assert_equal "$(jq -r '.removed[] | "\(.text) by \(.by)"' <<<"$output")" "pypi.org by pypi.org"
  [ ! -e ran ]
  assert_equal "$(containers_of)" ""
}

broken_edit() {
  make_project_in "$1" "edit-$BATS_TEST_NUMBER"
  write_config <<<'[network]'
  open_box "$1"
  printf '[network]\nblock_hosts = ["gitlab.com\n' >.agentbox/config.toml
  eventually says_degraded "$1"
  assert_contains "$(order "$probe")" "gitlab.com 0"
  printf '[network]\nblock_hosts = ["gitlab.com"]\n' >.agentbox/config.toml
  eventually is_denied
  # An edit that widens is not obeyed before its owner agreed.
  printf '[network]\nallow_hosts = ["example.com"]\n' >.agentbox/config.toml
  sleep 1.5
  assert_contains "$(order "$probe")" "example.com 6"
  run -0 in_topology "$1" policy trust
  eventually is_allowed
}
says_degraded() { in_topology "$1" policy show 2>&1 | grep -q 'config.toml:2' || grep -q 'config.toml:2' "$(home_in "$1")/.agentbox/sessions/$(session_id "$1")/status.json"; }
is_denied() { order "$probe" | grep -q 'gitlab.com 6'; }
is_allowed() { order "$probe" | grep -q 'example.com 0'; }

for topology in container sidecar; do
  bats_test_function --description "case 29 ($topology): allow and deny reach all boxes of the project at once, --always keeps the file's comments" -- both_take_it "$topology"
  bats_test_function --description "case 29 ($topology): --once ends by itself and is in no file" -- for_once "$topology"
  bats_test_function --description "case 31 ($topology): explain says what the box does" -- all_agree "$topology"
  bats_test_function --description "case 30 ($topology): an edit counts when it is whole and trusted, and the policy before goes on till then" -- broken_edit "$topology"
done
