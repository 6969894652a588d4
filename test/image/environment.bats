# What of the surroundings reaches the agent, and that nothing of it acts before the agent runs.
load helpers

setup_file() {
  make_project "$BATS_FILE_TMPDIR/project"
  mkdir bin
  local name
  for name in iptables-restore ipset setpriv env sh; do printf '#!/bin/sh\necho "%s" >>"%s/traces"\n' "$name" "$PWD" >"bin/$name"; done
  chmod +x bin/*
  # Each leaves a trace with the capabilities of the process that it acted on.
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
  export POISON=from-the-host FORWARDED="  of the host "
  # shellcheck disable=SC2016
  box -e FORWARDED -e SECRET_IN_OPTION=tell-nobody-option -e $'LINES=one\ntwo' -e EMPTY= -- \
    bash -c 'env -0 >environment; node -e 0; curl -s https://example.com/ >reached; touch up; timeout 20 sh -c "until [ -e inspected ]; do sleep 0.1; done"' 2>log 3>&- &
  file_appears up
  docker inspect $(containers_of) >inspected.json
  docker inspect --format '{{range .Config.Env}}{{println .}}{{end}}' $(containers_of) >container-environment
  touch inspected
  wait %1
  box --ignore-dot-env -- env -0 >environment-without 2>log-without
}

teardown_file() { end_background; }

setup() { cd "$BATS_FILE_TMPDIR/project"; }

# The value of a variable of the agent.
variable() {
  grep -z "^$2=" "$1" | tr -d '\0' | sed "1s/^$2=//"
}

@test "case 39: NODE_OPTIONS, LD_PRELOAD, BASH_ENV and PATH of .env act on the agent and on nothing before it" {
  # The control: they do act where they are meant to, each once.
  assert_equal "$(sort traces)" $'bash CapEff: 0000000000000000\nnode CapEff:\t0000000000000000'
}

@test "case 39: LD_PRELOAD of .env reaches no program before the agent" {
  # ld.so says once for each program that the library is missing: bash, and what the command starts.
  local first
  first=$(grep -n -m1 'LD_PRELOAD' log | cut -d: -f1)
  [ "$first" -gt "$(grep -n 'everything else is refused; verified' log | cut -d: -f1)" ]
}

@test "case 39: AGENTBOX_FIREWALL=0 and PATH in .env are ignored with a notice, and the firewall holds" {
  assert_contains "$(cat log)" "ignored in \"$PWD/.env\": PATH, AGENTBOX_FIREWALL, AGENTBOX_LOG"
  assert_contains "$(cat log)" "everything else is refused; verified"
  assert_equal "$(cat reached)" ""
  refute_contains "$(cat log)" '{"event"'
  assert_equal "$(variable environment AGENTBOX_FIREWALL)" ""
  refute_contains "$(variable environment PATH)" "$PWD"
}

@test "case 39: other variables of .env reach the agent, and none with --ignore-dot-env" {
  assert_equal "$(variable environment PLAIN)" "from the file"
  assert_equal "$(variable environment-without PLAIN)" ""
  assert_equal "$(variable environment-without NODE_OPTIONS)" ""
}

@test "case 39: nothing of the host's environment leaks in unless it is named" {
  refute_contains "$(tr '\0' '\n' <environment)" "from-the-host"
  assert_equal "$(variable environment FORWARDED)" "  of the host "
  assert_equal "$(variable environment LAB_NETWORK)" ""
  assert_equal "$(variable environment HOME)" "/home/agent"
}

@test "case 33: a value of -e may be empty or have several lines" {
  assert_equal "$(variable environment LINES)" $'one\ntwo'
  grep -qz '^EMPTY=$' environment
}

@test "case 39: the container itself has none of the agent's variables" {
  local names
  names=$(cut -d= -f1 container-environment | grep . | sort -u | tr '\n' ' ')
  assert_equal "$names" "AGENTBOX_FIREWALL DEBIAN_FRONTEND PATH "
  refute_contains "$(cat inspected.json)" "tell-nobody"
  refute_contains "$(cat inspected.json)" "from the file"
  refute_contains "$(cat inspected.json)" "from-the-host"
}

@test "case 39: secrets are not in what a start says" {
  refute_contains "$(cat log log-without)" "tell-nobody"
}

@test "case 39: a variable that the caller does not have is refused by name" {
  run -64 box -e NOT_SET_ANYWHERE -- true
  assert_contains "$output" "NOT_SET_ANYWHERE"
}

@test "case 38: a site's proxy named for the box stops the start while the firewall is on" {
  run -78 box --ignore-dot-env -e HTTPS_PROXY=http://user:hidden@proxy.example:3128 -- true
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
