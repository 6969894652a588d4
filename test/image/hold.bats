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
  'make a device' 'change the root' 'change the host name' 'become another user'
  'become another group' 'change ownership' 'open a VSOCK socket' 'set up io_uring' 'load a BPF program' 'use performance events'
  'add a key' 'follow page faults' 'write a kernel setting of the network' 'write the core pattern'
)
# What keeper-attacks.py does to each of the two programs that hold the firewall, and to what is theirs.
attacks_on_programs=(
  signal 'signal by handle' trace 'read the memory of' 'write the memory of' 'read by call the memory of' 'take a descriptor of'
  'read the environment of' 'list the descriptors of' 'follow a descriptor of' 'enter the root of' 'slow down' 'make a victim of'
)
attacks_on_their_things=(
  "list the keeper's directory" 'list its sockets' 'connect to the control socket' "connect to the proxy's socket"
  'read the decision log' 'write the decision log' 'put a file beside the log'
)

setup_file() {
  [ "$(id -u)" = 0 ] || skip "other users' boxes can be started by root only"
  local project kinds=(user root admin)
  for kind in "${kinds[@]}"; do
    project=$USERS/projects-1000/hold-$kind
    install -d -o 1000 -g 1000 "$project"
    install -m 644 "$ROOT"/test/fixtures/{attacks.py,keeper-attacks.py,planted.sh,state.sh} "$project"
  done
  make_project "$BATS_FILE_TMPDIR/control"
  cp "$ROOT"/test/fixtures/{attacks.py,planted.sh,state.sh} .
  local script='ipset create agentbox-learned-4 hash:net,port; iptables -N AGENTBOX-OUT; python3 /f/attacks.py >/f/attacks; sh /f/planted.sh >/f/planted'
  docker run --rm --init --network none "${CONTROL_RIGHTS[@]/#/--cap-add=}" --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
    --security-opt systempaths=unconfined --volume "$PWD:/f" --entrypoint sh "$IMAGE" -c "$script"

  script='python3 attacks.py >attacks; python3 keeper-attacks.py >keeper-attacks; sh planted.sh >planted; bash state.sh >state; find / -xdev -perm /6000 -type f >setuid 2>/dev/null; command -v sudo su doas pkexec >climbers; true'
  (cd "$USERS/projects-1000/hold-admin" && chmod 777 . && user_box 1000 1000 shell --admin -- sh -c "$script" </dev/null)
  (cd "$USERS/projects-1000/hold-root" && chown 0:0 . && box -- sh -c "$script" </dev/null)
  # The control of the attacks on the keeper is this very box, entered from the host with every right.
  cd "$USERS/projects-1000/hold-user"
  user_box 1000 1000 run -- sh -c "$script; touch up; timeout 30 sh -c 'until [ -e controlled ]; do sleep 0.1; done'" </dev/null 3>&- &
  PROJECT=$PWD file_appears up
  nsenter --target "$(docker inspect --format "{{.State.Pid}}" "$(PROJECT=$PWD holder_of)")" --mount --pid --ipc python3 - <keeper-attacks.py >controlled-attacks
  touch controlled
  wait $!
}

teardown_file() { end_background; }

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

# Where the agent's container has root's programs, init is root's. In a sidecar init is as powerless as the agent
# itself, which may then do with it what it likes: nothing there has a capability to gain.
@test "case 23: an agent cannot signal, trace or read the init of a box that is one container" {
  local attack
  for attack in 'signal init' 'trace init' "read init's memory"; do
    assert_equal "$attack: $(answer "$CONTROL/attacks" "$attack" | cut -f1)" "$attack: done"
    assert_equal "$attack: $(answer hold-user/attacks "$attack" | cut -f1)" "$attack: refused"
  done
}

@test "case 24: no process that an agent of a sidecar sees has a capability, or is another user's" {
  local kind
  for kind in root admin; do
    assert_equal "$kind: $(answer "hold-$kind/state" capable)" "$kind: none"
    assert_equal "$kind: $(answer "hold-$kind/state" owners)" "$kind: 0"
  done
  # The control: in a box that is one container there are such processes.
  assert_contains "$(answer hold-user/state capable)" "init"
  assert_equal "$(answer hold-user/state owners)" "0 1000 64990 64991"
}

refused_by_program() {
  local program
  for program in keeper proxy; do
    assert_equal "$(answers hold-user/controlled-attacks "$1 the $program")" "done"
    assert_equal "$(answers hold-user/keeper-attacks "$1 the $program")" refused
    # By EPERM or EACCES, and not because the attack was a bad one.
    assert_equal "$(grep -F "$1 the $program" hold-user/keeper-attacks | grep -vE '\[Errno (1|13)\]' || true)" ""
    # A sidecar's agent does not even see them.
    for kind in root admin; do assert_equal "$kind: $(answers "hold-$kind/keeper-attacks" "$1 the $program")" "$kind: absent"; done
  done
}
refused_by_things() {
  assert_equal "$(answers hold-user/controlled-attacks "$1")" "done"
  local kind
  for kind in user root admin; do assert_equal "$kind: $(answers "hold-$kind/keeper-attacks" "$1")" "$kind: refused"; done
}
# Every different outcome of an attack that was tried on several processes.
answers() { grep -P "^\Q$2\E\t" "$1" | cut -f2 | sort -u | paste -sd ' '; }
for attack in "${attacks_on_programs[@]}"; do
  bats_test_function --description "case 23: nobody in a box can $attack the keeper or the proxy" -- refused_by_program "$attack"
done
for attack in "${attacks_on_their_things[@]}"; do
  bats_test_function --description "case 25: nobody in a box can $attack" -- refused_by_things "$attack"
done

@test "case 23: every attack of the fixture is asked about above" {
  local known=$((${#attacks_on_the_firewall[@]} + ${#attacks_on_the_walls[@]} + 3))
  assert_equal "$(wc -l <"$CONTROL/attacks")" "$known"
  local kind
  for kind in user root admin; do
    assert_equal "$(wc -l <"hold-$kind/attacks")" "$known"
    assert_equal "$(cut -f1 "hold-$kind/keeper-attacks" | sort -u | wc -l)" $((2 * ${#attacks_on_programs[@]} + ${#attacks_on_their_things[@]}))
  done
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

@test "case 25: nothing of the entrypoint stays in the box: of root's there is init alone, and all else is the agent's, the keeper's or the proxy's" {
  local kind
  for kind in root admin; do assert_equal "$kind: $(processes_but "$kind" '^(docker-init|sh|bash|python3):0$')" "$kind: "; done
  assert_equal "$(processes_but user '^(sh|bash|python3):1000$|:6499[01]$')" "docker-init:0"
}
processes_but() { answer "hold-$1/state" processes | tr ' ' '\n' | grep -vE "$2" || true; }
