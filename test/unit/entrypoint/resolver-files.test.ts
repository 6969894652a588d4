import { describe, expect, it } from "vitest";
import { parseHosts, parseResolvConf } from "../../../entrypoint/resolver-files.ts";

describe("resolv.conf", () => {
  it.each([
    ["takes the name servers in their order", "nameserver 10.0.0.1\nnameserver fd00::53\n", ["10.0.0.1", "fd00::53"]],
    ["ignores what is no name server", "# nameserver 1.1.1.1\nsearch example.com\noptions ndots:0\n; nameserver 2.2.2.2\n", []],
    ["ignores what is no address", "nameserver localhost\nnameserver\n", []],
    ["takes tabs and trailing blanks", "nameserver\t10.0.0.1  \n", ["10.0.0.1"]],
  ])("%s", (_case, text, expected) => {
    expect(parseResolvConf(text)).toEqual(expected);
  });
});

describe("the hosts file", () => {
  it("gathers the addresses of each name, in lower case and without comments", () => {
    const hosts = parseHosts("127.0.0.1 localhost\n::1 localhost ip6-localhost\n93.184.216.34\tDB.example db # the one\n# 1.1.1.1 no\nnot-an-address x\n");
    expect(Object.fromEntries(hosts)).toEqual({
      localhost: ["127.0.0.1", "::1"],
      "ip6-localhost": ["::1"],
      "db.example": ["93.184.216.34"],
      db: ["93.184.216.34"],
    });
  });
});
