import { expect, test } from "vitest";
import { parseEntry } from "../../../policy/entry.ts";
import { warnSpecial } from "../../../policy/special-entry.ts";

const warn = (text: string): string | undefined => {
  const entry = parseEntry(text, "list");
  if (!entry.ok) throw new Error(entry.complaint.what);
  return warnSpecial(entry.value);
};

test.each([
  { text: "169.254.169.254:80", said: /^169\.254\.169\.254:80 opens the cloud's metadata service, which hands out the machine's credentials/ },
  { text: "169.254.0.0/16", said: /metadata service/ },
  { text: "[fd00:ec2::254]:80", said: /metadata service/ },
  { text: "64:ff9b::a9fe:a9fe", said: /metadata service/ },
  { text: "10.1.2.3", said: /^10\.1\.2\.3:?.* opens addresses that are not on the internet \(private use\)/ },
  { text: "127.0.0.1:8080", said: /loopback/ },
])("warns of $text", ({ text, said }) => {
  expect(warn(text)).toMatch(said);
});

test.each(["140.82.112.0/20", "8.8.8.8", "api.example.com", "*.example.com:8443"])("says nothing about %s", (text) => {
  expect(warn(text)).toBeUndefined();
});
