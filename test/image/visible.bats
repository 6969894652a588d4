# What is told of a refusal, and what of a box reaches its other container (cases 39, 40); report mode.
load helpers
load orders

setup() { lab POST /reset '{}'; }
teardown() { [ -z "${PROJECT-}" ] || touch "$PROJECT/over"; end_background; }

tells_refusals() {
  make_project_in "$1" "told-$BATS_TEST_NUMBER"
  write_config <<<'[network]'
  echo 'FROM_DOT_ENV=sesame' >.env
  open_box "$1" -e TYPED=sesame
  assert_contains "$(order 'echo "$FROM_DOT_ENV $TYPED"')" "sesame sesame"
  refute_contains "$(docker inspect "$(holder_of)" | jq -r '.[].Config.Env[]')" sesame
  [ "$1" = container ] || refute_contains "$(docker exec --user 0 "$(holder_of)" cat /run/agentbox/box.json)" sesame
  order 'curl --noproxy \* -sS https://example.com/; curl --noproxy \* -sS https://statsig.anthropic.com/; curl --noproxy \* -sS --connect-timeout 3 https://93.184.220.35:8443/' >/dev/null
  logged "$1" '.protocol == "address" and .host == "93.184.220.35"'
  run -0 in_topology "$1" blocked
  assert_equal "$(grep -c 'example.com' <<<"$output")" 1
  [[ $(grep example.com <<<"$output") =~ ^20[0-9T:.-]+Z\ +example.com\ .*not_allowed.*"agentbox policy allow example.com" ]]
  assert_contains "$(grep 93.184.220.35 <<<"$output")" "agentbox policy allow 93.184.220.35:8443"
  close_box 3
  assert_contains "$(cat box.log)" "This session was refused:"
  assert_contains "$(cat box.log)" "agentbox policy allow --always"
  refute_contains "$(sed -n '/This session was refused/,$p' box.log)" statsig
}

# The box ends with its agent, and its proxy hears of nothing: what it had only counted is told all the same.
keeps_counts() {
  make_project_in "$1" "counted-$BATS_TEST_NUMBER"
  firewalled "$1" -- sh -c 'curl -sS -o /dev/null https://github.com/; for n in 1 2 3 4 5; do curl -s -o /dev/null -X PROPFIND "http://example.com/$n"; done' </dev/null >log 2>&1
  run -0 --separate-stderr in_topology "$1" logs --json
  assert_equal "$(jq -s 'map(select(.host == "example.com" and .method == "PROPFIND").count) | add' <<<"$output")" 5
  assert_equal "$(jq -s 'map(.seq) == [range(length)]' <<<"$output")" true
  assert_equal "$(jq -s 'map(select(.kind == "traffic" and .host == "github.com" and .protocol == "https-connect")) | length' <<<"$output")" 1
}

reports() {
  make_project_in "$1" "report-$BATS_TEST_NUMBER"
  lab POST /dns '{"example.org":{"a":["10.1.2.3"],"aaaa":[]}}'
  trusted_config "$1" <<<$'[network]\nreport = true\nblock_hosts = ["example.net"]'
  open_box "$1"
  assert_equal "$(order 'for host in example.com example.net example.org; do curl --noproxy \* -sS -o /dev/null --connect-timeout 3 https://$host/ 2>/dev/null; echo "$host $?"; done')" $'example.com 0\nexample.net 6\nexample.org 6\nexit 0'
  logged "$1" '.host == "example.com" and .action == "report"'
  logged "$1" '.host == "example.net" and .action == "deny" and .reason == "denied"'
  close_box
  assert_contains "$(cat box.log)" "report"
  run -0 in_topology "$1" policy suggest
  assert_contains "$output" '"example.com"'
  refute_contains "$output" "example.net"
}

for topology in container sidecar; do
  bats_test_function --description "case 39, 40 ($topology): a refusal is one line with its remedy, a failed session ends with a report, and no secret reaches the holder" -- tells_refusals "$topology"
  bats_test_function --description "case 41 ($topology): a session that ends at once leaves nothing of what it was refused out of its log" -- keeps_counts "$topology"
  bats_test_function --description "report mode ($topology): lets through and writes down; blocked and private stay closed" -- reports "$topology"
done
