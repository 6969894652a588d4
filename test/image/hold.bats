# What holds inside a box against an agent that wants out or up. The same attacks run as an ordinary
# user's agent, as a root user's agent (uid 0 without capabilities), in `shell --admin`, and, as the
# control, in a container that has the rights: there each of them works.
load helpers

CONTROL_RIGHTS=(NET_ADMIN NET_RAW SYS_ADMIN SYS_PTRACE SYS_CHROOT MKNOD DAC_READ_SEARCH)

# What the fixture attacks.py calls them.
attacks_on_the_firewall=(
  'list rules' 'add a rule' 'flush the chain' 'flush IPv6' 'change the policy' 'restore rules' 'list nftables' 'flush nftables'
  'add to a set' 'make a set' 'flush connections' 'add an interface' 'add an address' 'add a route' 'add a routing rule' 'bring lo down' 'speak netlink'
)
attacks_on_the_walls=(
  'make a network namespace' 'make a user namespace' 'make a mount namespace' 'make a process namespace' 'make a IPC namespace'
  'make a UTS namespace' 'make a cgroup namespace' 'make a user and network namespace' "enter init's network namespace"
  "enter init's mount namespace" 'mount a file system' 'mount proc' 'bind over a file' 'make the root writable' 'unmount'
  'make a device' 'change the root' 'change the host name' 'trace init' "read init's memory" 'become another user'
  'become another group' 'change ownership' 'open a VSOCK socket' 'set up io_uring' 'load a BPF program' 'use performance events'
  'add a key' 'follow page faults' 'write a kernel setting of the network' 'write the core pattern'
)

setup_file() {
  [ "$(id -u)" = 0 ] || skip "other users' boxes can be started by root only"
  local project kinds=(user root admin)
  for kind in "${kinds[@]}"; do
    project=$USERS/projects-1000/hold-$kind
    install -d -o 1000 -g 1000 "$project"
    install -m 644 "$ROOT"/test/fixtures/{attacks.py,planted.sh,state.sh} "$project"
  done
  make_project "$BATS_FILE_TMPDIR/control"
  cp "$ROOT"/test/fixtures/{attacks.py,planted.sh,state.sh} .
  local script='ipset create agentbox-learned-4 hash:net,port; iptables -N AGENTBOX-OUT; python3 /f/attacks.py >/f/attacks; sh /f/planted.sh >/f/planted'
  docker run --rm --init --network none "${CONTROL_RIGHTS[@]/#/--cap-add=}" --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
    --security-opt systempaths=unconfined --volume "$PWD:/f" --entrypoint sh "$IMAGE" -c "$script"

  script='python3 attacks.py >attacks; sh planted.sh >planted; bash state.sh >state; find / -xdev -perm /6000 -type f >setuid 2>/dev/null; command -v sudo su doas pkexec >climbers; true'
  (cd "$USERS/projects-1000/hold-user" && user_box 1000 1000 run -- sh -c "$script")
  (cd "$USERS/projects-1000/hold-admin" && chmod 777 . && user_box 1000 1000 shell --admin -- sh -c "$script")
  (cd "$USERS/projects-1000/hold-root" && chown 0:0 . && box -- sh -c "$script")
}

setup() {
  cd "$USERS/projects-1000"
  CONTROL=$BATS_FILE_TMPDIR/control
}

holds_against() {
  assert_equal "$(answer "$CONTROL/attacks" "$1" | cut -f1)" "done"
  local kind
  for kind in user root admin; do assert_equal "$kind: $(answer "hold-$kind/attacks" "$1" | cut -f1)" "$kind: refused"; done
}

for attack in "${attacks_on_the_firewall[@]}"; do
  bats_test_function --description "case 23: nobody in a box can $attack" -- holds_against "$attack"
done
for attack in "${attacks_on_the_walls[@]}"; do
  bats_test_function --description "case 24: nobody in a box can $attack" -- holds_against "$attack"
done

@test "case 23: an agent cannot signal the init of its box" {
  assert_equal "$(answer hold-user/attacks "signal init" | cut -f1)" refused
}

@test "case 23: every attack of the fixture is asked about above" {
  local known=$((${#attacks_on_the_firewall[@]} + ${#attacks_on_the_walls[@]} + 1))
  assert_equal "$(wc -l <"$CONTROL/attacks")" "$known"
  local kind
  for kind in user root admin; do assert_equal "$(wc -l <"hold-$kind/attacks")" "$known"; done
}

@test "case 25: no path that root executes or reads can be written, replaced or moved away, whoever the agent is" {
  assert_equal "$(answer "$CONTROL/planted" /usr/local/lib/agentbox/entrypoint.mjs)" "done"
  assert_equal "$(answer "$CONTROL/planted" /etc/ld.so.preload)" "done"
  assert_equal "$(grep -w "done" hold-user/planted)" ""
  # For uid 0 the empty, noexec tmpfs on /run is its own.
  local kind
  for kind in root admin; do assert_equal "$(grep -w "done" "hold-$kind/planted" | grep -v '^/run/\(agentbox/\)\?planted')" ""; done
}

@test "case 23: all capability sets are zero and NoNewPrivs is 1, in the agent, its children and programs it starts anew" {
  local kind set
  for kind in user root admin; do
    for set in CapInh CapPrm CapEff CapBnd CapAmb; do
      assert_equal "$kind: $(grep -c "$set:0000000000000000" "hold-$kind/state")" "$kind: 4"
    done
    assert_equal "$kind: $(grep -c 'NoNewPrivs:1' "hold-$kind/state")" "$kind: 4"
    assert_equal "$kind: $(grep -c 'Seccomp:2' "hold-$kind/state")" "$kind: 4"
  done
}

@test "case 23: the agent starts with default signals, none blocked" {
  local kind
  for kind in user root admin; do
    assert_equal "$kind: $(grep -c 'SigIgn:0000000000000000' "hold-$kind/state")" "$kind: 4"
    assert_equal "$kind: $(grep -c 'SigBlk:0000000000000000' "hold-$kind/state")" "$kind: 4"
  done
}

@test "case 23: the agent's standard descriptors are blocking, and it has no others" {
  local kind
  for kind in user root admin; do
    assert_equal "$kind: $(answer "hold-$kind/state" nonblocking)" "$kind: none"
    assert_equal "$kind: $(answer "hold-$kind/state" descriptors)" "$kind: 0 1 2"
  done
}

@test "case 24: the ids are the user's, root's in an admin shell, with no further group" {
  assert_equal "$(answer hold-user/state ids)" "1000 1000 1000 1000 1000 1000 1000"
  assert_equal "$(answer hold-root/state ids)" "0 0 0 0 0 0 0"
  assert_equal "$(answer hold-admin/state ids)" "0 0 0 0 0 0 0"
}

@test "case 24: there is no setuid or setgid program in a box, and no sudo" {
  local kind
  for kind in user root admin; do
    assert_equal "$(cat "hold-$kind/setuid")" ""
    assert_equal "$(grep -v '/su$' "hold-$kind/climbers")" ""
  done
}

@test "case 25: nothing of the entrypoint stays in the box: init and the agent are its only processes" {
  local kind
  for kind in user root admin; do refute_contains "$(answer "hold-$kind/state" processes)" "node"; done
  assert_contains "$(answer hold-user/state processes)" "init"
}
