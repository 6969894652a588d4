import { expect, test } from "vitest";
import { explainBuildFailure } from "../../../../cli/image/build-failure.ts";

const command = "The command '/bin/sh -c apt-get install openssl ca-certificates && update-ca-certificates' returned a non-zero code: 1";

test.each([
  { name: "an unknown version of an agent", lines: ["npm error code ETARGET", "npm error notarget No matching version found for x@9.", command], fix: /version in --agents/ },
  { name: "an unknown version, told apart from the network", lines: ["npm warn retry ETIMEDOUT", "npm error code E404", command], fix: /version in --agents/ },
  { name: "a certificate that is not trusted", lines: ["curl: (60) SSL certificate problem", command], fix: /--ca-file/ },
  { name: "a missing package", lines: ["E: Unable to locate package nosuch", command], fix: /correct --package/ },
  { name: "a network that does not answer", lines: ["Temporary failure resolving 'deb.example'", command], fix: /HTTP_PROXY/ },
  { name: "nothing that is known", lines: ["it broke", command], fix: /correct what the last lines name/ },
  { name: "nothing that is known, as BuildKit says it", lines: ["it broke", `ERROR: failed to solve: process "/bin/sh -c update-ca-certificates" did not complete`], fix: /correct what the last lines name/ },
])("names the remedy for $name", ({ lines, fix }) => {
  const error = explainBuildFailure("RUN it", lines);
  expect(error.complaints[0]?.fix).toMatch(fix);
  expect(error.message).not.toContain("/bin/sh -c");
});

test("shows the last lines without the builder's colours", () => {
  expect(explainBuildFailure("", ["\u001B[91mnpm error\u001B[0m broke"]).message).toContain("\nnpm error broke\n");
});
