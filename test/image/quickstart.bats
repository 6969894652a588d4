# What a new user runs first: the README's second command, with the same image and a lab of its own.
load helpers

@test "npm run quickstart shows twelve rows, each as it should be, and the next command" {
  run -0 --separate-stderr "$NODE" "$ROOT/scripts/quickstart.ts"
  assert_equal "$(grep -c 'as it should be' <<<"$output")" 12
  assert_equal "$(grep -c ' refused ' <<<"$output")" 8
  assert_contains "$output" "DNS wall"
  assert_contains "$output" "$ROOT/agentbox setup"
}
