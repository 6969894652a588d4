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
  bats_test_function --description "report mode ($topology): lets through and writes down; blocked and private stay closed" -- reports "$topology"
done
