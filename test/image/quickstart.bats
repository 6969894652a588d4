# What a new user runs first: the README's second command, with the same image and a lab of its own.
load helpers

@test "npm run quickstart shows thirteen rows, each as it should be, and the next command" {
  run -0 --separate-stderr "$NODE" "$ROOT/scripts/quickstart.ts"
  assert_equal "$(grep -c 'as it should be' <<<"$output")" 13
  assert_equal "$(grep -c ' refused ' <<<"$output")" 9
  local wall
  for wall in DNS address name; do assert_contains "$output" "$wall wall"; done
  assert_contains "$output" "$ROOT/agentbox setup"
}
