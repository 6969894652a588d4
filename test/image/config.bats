# What a configuration that cannot be read does to a start, and what each mode of it opens (case 8).
load helpers
load orders

setup() { lab POST /reset '{}'; }

# The text of the file (\n for new lines) | what stands in the message, apart by ; | the same file corrected.
broken=(
  'an unknown key|[network]\nalow_hosts = ["example.com"]\n|config.toml:2:1;^;allow_hosts|[network]\nblock_hosts = ["example.com"]\n'
  'a text without its end|[network]\nblock_hosts = ["example.com\n|config.toml:2;^|[network]\nblock_hosts = ["example.com"]\n'
  'a word of another kind|[network]\nmode = "non"\n|config.toml:2:8;^;"none"|[network]\nmode = "allowlist"\n'
  'a host that is no host|[network]\nallow_hosts = ["*.com"]\n|config.toml:2:16;^|[network]\nblock_hosts = ["x.com"]\n'
  'a list file that is missing|[network]\nallow_file = "hosts.txt"\n|config.toml:2;hosts.txt;does not exist|[network]\n'
)

is_refused() {
  make_project_in container "config-$BATS_TEST_NUMBER"
  printf "$1" | write_config
  run -78 --separate-stderr configured container run -- sh -c 'touch ran'
  local needle needles
  IFS=';' read -ra needles <<<"$2"
  for needle in "${needles[@]}"; do assert_contains "$stderr" "$needle"; done
  [ ! -e ran ]
  assert_equal "$(containers_of)" ""
  # The control: the file corrected gets as far as a plan.
  printf "$3" | write_config
  run -0 configured container run --dry-run -- sh -c 'touch ran'
}
for row in "${broken[@]}"; do
  IFS='|' read -r name text needles corrected <<<"$row"
  bats_test_function --description "case 8: $name stops the start with 78, its place and what is meant" -- is_refused "$text" "$needles" "$corrected"
done

@test "case 8: a file that cannot be read, a link in its place and a directory that is a link stop the start with 78" {
  make_project_in container unreadable
  echo '[network]' | write_config
  run -0 configured container run --dry-run -- true
  chmod 0 .agentbox/config.toml
  run -78 configured container run -- sh -c 'touch ran'
  assert_contains "$output" "config.toml"
  rm .agentbox/config.toml
  ln -s /etc/hostname .agentbox/config.toml
  run -78 configured container run -- sh -c 'touch ran'
  assert_contains "$output" "is a link to"
  refute_contains "$output" "$(cat /etc/hostname)"
  rm -r .agentbox
  mkdir elsewhere
  echo '[network]' >elsewhere/config.toml
  ln -s elsewhere .agentbox
  run -78 configured container run -- sh -c 'touch ran'
  assert_contains "$output" "is a link to"
  [ ! -e ran ]
}

# TOPOLOGY, the text of the file: a box that starts and has nothing but lo.
has_no_network() {
  make_project_in "$1" "none-$BATS_TEST_NUMBER"
  printf "$2" | trusted_config "$1"
  run -0 --separate-stderr unconnected "$1" run -- sh -c 'ls /sys/class/net; curl --noproxy \* -sS --connect-timeout 2 https://github.com/ 2>&1; curl --noproxy \* -sS --connect-timeout 2 --resolve x.test:443:140.82.112.3 https://x.test/ 2>&1; echo started'
  assert_equal "$(head -1 <<<"$output")" lo
  assert_contains "$output" "Could not resolve host: github.com"
  assert_contains "$output" "Failed to connect to x.test port 443"
  assert_contains "$output" started
  assert_contains "$stderr" "this box has no network at all"
  refute_contains "$(lab GET /connections)" "140.82.112.3"
}
for topology in container sidecar; do
  bats_test_function --description "case 8 ($topology): mode none is a box that starts and reaches nothing" -- has_no_network "$topology" '[network]\nmode = "none"\n'
done
bats_test_function --description "case 8 (sidecar): an empty allowlist is a box that starts and reaches nothing" -- has_no_network sidecar '[network]\nblock_hosts = ["*"]\n'
bats_test_function --description "case 8 (container): the preset lockdown is a box that starts and reaches nothing" -- has_no_network container '[network]\npresets = ["lockdown"]\n'

# The positive control of all refusals: the same table without a mode, and with mode full.
reaches() {
  make_project_in "$1" "mode-$BATS_TEST_NUMBER"
  printf "$2" | trusted_config "$1"
  run -0 --separate-stderr configured "$1" run -- sh -c 'for host in github.com example.com; do curl --noproxy \* -sS -o /dev/null https://$host/; echo "$host $?"; done'
  assert_contains "$output" "github.com 0"
  assert_contains "$output" "example.com $3"
  assert_contains "$stderr" "$4"
}
for topology in container sidecar; do
  bats_test_function --description "case 8 ($topology): a [network] table alone is the firewall" -- reaches "$topology" '[network]\n' 6 "verified"
done
bats_test_function --description "case 8 (container): mode full is open, and says so" -- reaches container '[network]\nmode = "full"\n' 0 'mode = "full": FIREWALL OFF'

@test "case 8: AGENTBOX_FIREWALL=1 makes an allowlist of mode full, and says so" {
  make_project_in container full-on
  printf '[network]\nmode = "full"\n' | trusted_config container
  AGENTBOX_FIREWALL=1 run -6 --separate-stderr configured container run -- curl --noproxy \* -sS https://example.com/
  assert_contains "$stderr" 'AGENTBOX_FIREWALL=1 turns the firewall on although mode = "full"'
}

@test "case 8: what the user's own file requires, nothing turns off" {
  make_project_in container required
  local own
  own=$(home_in container)/.agentbox
  install -d -o 1000 -g 1000 -m 700 "$own"
  printf '[network]\nrequired = true\nblock_hosts = ["gitlab.com"]\n' >"$own/config.toml"
  chmod 644 "$own/config.toml"
  run -64 configured container run --full-network -- true
  assert_contains "$output" "requires the firewall"
  AGENTBOX_FIREWALL=0 run -64 configured container run -- true
  assert_contains "$output" "requires the firewall"
  # A project's file that opens all needs trust, and trusted it still does not.
  printf '[network]\nmode = "full"\n' | trusted_config container
  run -64 configured container run -- true
  assert_contains "$output" "requires the firewall"
  # The control, which also shows that blocks of the user's own file hold beside a project's file.
  printf '[network]\n' | trusted_config container
  run -0 configured container run -- sh -c 'curl --noproxy \* -sS -o /dev/null https://github.com/ && ! curl --noproxy \* -sS https://gitlab.com/'
  assert_contains "$output" "Could not resolve host: gitlab.com"
  rm "$own/config.toml"
  run -0 configured container run --full-network -- curl --noproxy \* -sS -o /dev/null https://example.com/
}
