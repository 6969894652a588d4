# What of the surroundings reaches the agent, and that nothing of it acts before the agent runs.
load helpers

setup_file() {
  local topology boxes=()
  export POISON=from-the-host FORWARDED="  of the host "
  for topology in container sidecar; do
    make_project_in "$topology" environment
    lay_traps
    # shellcheck disable=SC2016
    firewalled "$topology" -e FORWARDED -e SECRET_IN_OPTION=tell-nobody-option -e $'LINES=one\ntwo' -e EMPTY= -- \
      bash -c 'env -0 >environment; node -e 0; curl -s --resolve example.com:443:93.184.220.34 https://example.com/ >reached; touch up; timeout 30 sh -c "until [ -e inspected ]; do sleep 0.1; done"' 2>log </dev/null 3>&- &
    boxes+=($!)
  done
  for topology in container sidecar; do
    make_project_in "$topology" environment
    file_appears up
    docker inspect $(containers_of) >inspected.json
    docker inspect --format '{{range .Config.Env}}{{println .}}{{end}}' $(containers_of) >container-environment
    touch inspected
  done
  wait "${boxes[@]}"
  box --ignore-dot-env -- env -0 >environment-without 2>log-without </dev/null
}

# What must act on the agent alone: each leaves a trace with the capabilities of the process that it acted on.
lay_traps() {
  local name
  mkdir bin
  for name in iptables-restore ipset setpriv env sh; do printf '#!/bin/sh\necho "%s" >>"%s/traces"\n' "$name" "$PWD" >"bin/$name"; done
  chmod +x bin/*
  echo "require('node:fs').appendFileSync('$PWD/traces', 'node ' + /CapEff.*/.exec(require('node:fs').readFileSync('/proc/self/status', 'utf8'))[0] + '\n')" >trace.cjs
  echo "echo bash \$(grep CapEff /proc/self/status) >>'$PWD/traces'" >trace.sh
  cat >.env <<ENV
NODE_OPTIONS=--require=$PWD/trace.cjs
LD_PRELOAD=$PWD/trace.so
BASH_ENV=$PWD/trace.sh
ENV=$PWD/trace.sh
PATH=$PWD/bin
AGENTBOX_FIREWALL=0
AGENTBOX_LOG=json
PLAIN="from the file"
SECRET_IN_FILE=tell-nobody-file
ENV
}

teardown_file() { end_background; }

setup() { enter sidecar; }

enter() { cd "$USERS/projects-1000/$1-environment" || return; }

# The value of a variable of the agent.
variable() {
  grep -z "^$2=" "$1" | tr -d '\0' | sed "1s/^$2=//"
}

acts_on_the_agent_alone() {
  enter "$1"
  # The control: they do act where they are meant to, each once.
  assert_equal "$(sort traces)" $'bash CapEff: 0000000000000000\nnode CapEff:\t0000000000000000'
}

preloads_nothing_before() {
  enter "$1"
  # ld.so says once for each program that the library is missing: bash, and what the command starts.
  local first
  first=$(grep -n -m1 'LD_PRELOAD' log | cut -d: -f1)
  [ "$first" -gt "$(grep -n '; verified' log | tail -1 | cut -d: -f1)" ]
}

ignores_switches() {
  enter "$1"
  assert_contains "$(cat log)" "ignored in \"$PWD/.env\": PATH, AGENTBOX_FIREWALL, AGENTBOX_LOG"
  assert_contains "$(cat log)" "everything else is refused; verified"
  assert_equal "$(cat reached)" ""
  refute_contains "$(cat log)" '{"event"'
  assert_equal "$(variable environment AGENTBOX_FIREWALL)" ""
  refute_contains "$(variable environment PATH)" "$PWD"
}

leaks_nothing() {
  enter "$1"
  refute_contains "$(tr '\0' '\n' <environment)" "from-the-host"
  assert_equal "$(variable environment FORWARDED)" "  of the host "
  assert_equal "$(variable environment LAB_NETWORK)" ""
  assert_equal "$(variable environment HOME)" "/home/agent"
}

containers_have_none() {
  enter "$1"
  local names
  names=$(cut -d= -f1 container-environment | grep . | sort -u | tr '\n' ' ')
  assert_equal "$names" "AGENTBOX_FIREWALL DEBIAN_FRONTEND PATH "
  refute_contains "$(cat inspected.json)" "tell-nobody"
  refute_contains "$(cat inspected.json)" "from the file"
  refute_contains "$(cat inspected.json)" "from-the-host"
}

for topology in container sidecar; do
  bats_test_function --description "case 39 ($topology): NODE_OPTIONS, LD_PRELOAD, BASH_ENV and PATH of .env act on the agent and on nothing before it" -- acts_on_the_agent_alone "$topology"
  bats_test_function --description "case 39 ($topology): LD_PRELOAD of .env reaches no program before the agent" -- preloads_nothing_before "$topology"
  bats_test_function --description "case 39 ($topology): AGENTBOX_FIREWALL=0 and PATH in .env are ignored with a notice, and the firewall holds" -- ignores_switches "$topology"
  bats_test_function --description "case 39 ($topology): nothing of the host's environment leaks in unless it is named" -- leaks_nothing "$topology"
  bats_test_function --description "case 39 ($topology): the containers themselves have none of the agent's variables" -- containers_have_none "$topology"
done

@test "case 39: other variables of .env reach the agent, and none with --ignore-dot-env" {
  assert_equal "$(variable environment PLAIN)" "from the file"
  assert_equal "$(variable environment-without PLAIN)" ""
  assert_equal "$(variable environment-without NODE_OPTIONS)" ""
}

@test "case 33: a value of -e may be empty or have several lines" {
  assert_equal "$(variable environment LINES)" $'one\ntwo'
  grep -qz '^EMPTY=$' environment
}

@test "case 39: secrets are not in what a start says" {
  refute_contains "$(cat log log-without ../container-environment/log)" "tell-nobody"
}

@test "case 39: a variable that the caller does not have is refused by name" {
  run -64 box -e NOT_SET_ANYWHERE -- true
  assert_contains "$output" "NOT_SET_ANYWHERE"
}

@test "case 38: a site's proxy named for the box gives way to the box's own, and stops the start where there is none" {
  run -0 --separate-stderr box --ignore-dot-env -e HTTPS_PROXY=http://user:hidden@proxy.example:3128 -- env
  assert_contains "$stderr" "HTTPS_PROXY of yours: the box's own proxy takes its place"
  assert_contains "$output" "HTTPS_PROXY=http://127.0.0.1:3128"
  refute_contains "$output$stderr" "hidden"
  run -78 box --enforcement address --ignore-dot-env -e HTTPS_PROXY=http://user:hidden@proxy.example:3128 -- true
  assert_contains "$output" "proxy.example:3128"
  assert_contains "$output" "fix:"
  refute_contains "$output" "hidden"
}

@test "case 38: the same certificates serve build and box: every client in it knows the site's authority" {
  local name
  for name in NODE_EXTRA_CA_CERTS SSL_CERT_FILE CURL_CA_BUNDLE GIT_SSL_CAINFO REQUESTS_CA_BUNDLE npm_config_cafile; do
    assert_equal "$name $(variable environment "$name")" "$name /etc/ssl/certs/ca-certificates.crt"
  done
  assert_contains "$(cat log)" "it serves build and box"
}

@test "case 37: the host's git identity comes in, its configuration does not" {
  assert_equal "$(variable environment GIT_AUTHOR_NAME)" "Box Tester"
  run -0 box --ignore-dot-env -- sh -c 'test ! -e ~/.gitconfig && git config --global --list; true'
}
