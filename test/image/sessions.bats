# Sessions side by side, and what is left of one that ends in an unusual way: nothing.
load helpers

setup() {
  TOPOLOGY=sidecar
  make_project
}
teardown() { end_background; }

# in_a TOPOLOGY FUNCTION…: the same with boxes of that topology.
in_a() {
  TOPOLOGY=$1
  make_project_in "$1" "sessions-$BATS_TEST_NUMBER"
  "${@:2}"
}

# start COMMAND…: a box in the background; BOX is the process of the command line itself.
start() {
  local as=() program=("$AGENTBOX" run)
  if [ "$TOPOLOGY" = container ]; then
    as=(HOME="$USERS/home-1000" setpriv --reuid 1000 --regid 1000 --groups "$(stat -Lc %g /var/run/docker.sock)" --)
    program=("$USER_AGENTBOX" run --agents "claude codex" --ca-file "$USERS/ca.pem")
  fi
  (AGENTBOX_FIREWALL=1 exec env --default-signal "${as[@]}" "${program[@]}" --network "$LAB_NETWORK" --dns "$LAB_DNS" -- "$@" </dev/null >>log 2>&1 3>&-) &
  BOX=$!
}

# Waits for the command line; CODE is its exit code.
ended() {
  CODE=0
  wait "$BOX" || CODE=$?
}

session_of() { docker inspect --format '{{index .Config.Labels "agentbox.session"}}' "$(agent_of)"; }

nothing_left() {
  assert_equal "$(containers_of)$(HOME=$(home_in "$TOPOLOGY") sessions_of)" ""
  local extra
  extra=$(ls -A | grep -v -e '^log$' -e '^up$' -e '^caught$' -e '^[0-9]*$' || true)
  assert_equal "$extra" "${1-}"
}

@test "case 35: two sessions in one project run side by side" {
  start sh -c 'touch up; timeout 20 sh -c "until [ -e second ]; do sleep 0.05; done"; rm second; exit 11'
  file_appears up
  run -12 box -- sh -c 'touch second; timeout 20 sh -c "while [ -e second ]; do sleep 0.05; done"; exit 12' </dev/null
  ended
  assert_equal "$CODE" 11
  nothing_left
}

@test "case 35: five sessions in five projects start at once, none meets another" {
  local number boxes=() codes=()
  for number in 1 2 3 4 5; do
    mkdir "$PROJECT/$number"
    (cd "$PROJECT/$number" && start sh -c "node -e 'require(\"node:net\").createServer().listen(3000)' & touch up; timeout 30 sh -c 'until [ -e go ]; do sleep 0.1; done'; curl -sS -o /dev/null https://github.com/ && exit 2$number" && ended; exit "$CODE") 3>&- &
    boxes+=($!)
  done
  for number in 1 2 3 4 5; do file_appears "$PROJECT/$number/up"; done
  touch "$PROJECT"/{1,2,3,4,5}/go
  local code
  for number in "${boxes[@]}"; do code=0; wait "$number" || code=$?; codes+=("$code"); done
  assert_equal "${codes[*]}" "21 22 23 24 25"
}

# A signal of the command line reaches the agent, which has time to end; everything is removed.
ends_with() {
  start sh -c "trap 'echo $1 >caught; exit 5' $1; touch up; while :; do sleep 0.1; done"
  file_appears up
  kill -s "$1" "$BOX"
  ended
  assert_equal "$CODE" "$2"
  assert_equal "$(cat caught)" "$1"
  assert_contains "$(cat log)" "ended by SIG$1"
  nothing_left
}
for topology in container sidecar; do
  bats_test_function --description "case 36 ($topology): SIGTERM of the command line reaches the agent and leaves nothing" -- in_a "$topology" ends_with TERM 143
done
bats_test_function --description "case 36: SIGHUP of the command line reaches the agent and leaves nothing" -- ends_with HUP 129
bats_test_function --description "case 36: SIGINT of the command line reaches the agent and leaves nothing" -- ends_with INT 130

@test "case 36: a second signal ends an agent that does not listen" {
  start sh -c "trap '' TERM; touch up; while :; do sleep 0.1; done"
  file_appears up
  kill -TERM "$BOX"
  sleep 0.3
  local started=$SECONDS
  kill -TERM "$BOX"
  ended
  assert_equal "$CODE" 143
  [ $((SECONDS - started)) -lt 5 ]
  nothing_left
}

# The command line is killed after so many seconds: before, while and after it makes the container.
survives_kill_after() {
  git init -q .
  chown -R --reference . .git
  start sleep 60
  sleep "$1"
  kill -KILL "$BOX"
  ended
  assert_equal "$CODE" 137
  run -0 firewalled "$TOPOLOGY" -- true </dev/null
  nothing_left .git
  assert_equal "$(ls .git/commondir .git/config.worktree .vscode .devcontainer .claude .agentbox 2>/dev/null)" ""
  git -c safe.directory='*' status >/dev/null
}
# A sidecar takes longer to make: its holder is made, started and ready before the agent's container is.
for row in container:0.3 container:0.8 sidecar:0.1 sidecar:0.35 sidecar:0.6 sidecar:1.2; do
  bats_test_function --description "case 36 (${row%:*}): of a command line killed by SIGKILL after ${row#*:} s nothing is left after the next start" -- in_a "${row%:*}" survives_kill_after "${row#*:}"
done

@test "case 36: cleanup removes a killed session and what belongs to projects that are gone" {
  start sh -c 'touch up; sleep 60'
  file_appears up
  kill -KILL "$BOX"
  ended
  local volumes
  volumes=$(docker volume ls --quiet --filter "label=agentbox.project=$PROJECT" | wc -l)
  [ "$volumes" -ge 2 ]
  cd /
  # Alone in its directory, the project might have lain on a disk that is away now.
  touch "$(dirname "$PROJECT")/neighbour"
  rm -rf "$PROJECT"
  run -0 "$AGENTBOX" cleanup
  assert_contains "$output" "killed session"
  assert_equal "$(containers_of)" ""
  assert_equal "$(docker volume ls --quiet --filter "label=agentbox.project=$PROJECT")" ""
  mkdir "$PROJECT"
}

stopped_by_the_engine() {
  start sh -c "trap 'echo TERM >caught; exit 9' TERM; touch up; while :; do sleep 0.1; done"
  file_appears up
  docker stop --time 5 "$(agent_of)" >/dev/null
  ended
  assert_equal "$CODE" 9
  assert_equal "$(cat caught)" TERM
  nothing_left
}

removed_by_others() {
  start sh -c 'touch up; sleep 60'
  file_appears up
  docker rm --force "$("$1")" >/dev/null
  ended
  assert_equal "$CODE" "$2"
  nothing_left
}
for topology in container sidecar; do
  bats_test_function --description "($topology) docker stop gives the agent its SIGTERM, and its exit code comes through" -- in_a "$topology" stopped_by_the_engine
  bats_test_function --description "case 36 ($topology): a box that someone else removes ends the command line with 69" -- in_a "$topology" removed_by_others agent_of 69
done
bats_test_function --description "case 36 (sidecar): a holder that someone else removes ends the box with 70" -- in_a sidecar removed_by_others holder_of 70

@test "case 37: a path with spaces, quotes, commas and letters of all kinds" {
  make_project "$PROJECT/my \"próject\", it's: ✓"
  run -0 --separate-stderr box -- sh -c 'pwd; echo inside >file' </dev/null
  assert_equal "$output" "$PWD"
  assert_equal "$(cat file)" inside
  nothing_left file
}

@test "case 37: a symlinked project works under its real path, and the start says so" {
  mkdir "$PROJECT/real"
  ln -s real "$PROJECT/link"
  cd "$PROJECT/link"
  run -0 --separate-stderr box -- sh -c 'pwd -P; echo inside >file' </dev/null
  assert_equal "$output" "$PROJECT/real"
  assert_contains "$stderr" "\"$PROJECT/link\" is a link: the box has the project at \"$PROJECT/real\""
  assert_equal "$(cat "$PROJECT/link/file")" inside
}
