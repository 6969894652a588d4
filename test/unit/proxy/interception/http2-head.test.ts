import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseHostPort } from "../../../../policy/host-name.ts";
import { dropHopFields, type Fields, findField, readHttp2Head } from "../../../../proxy/interception/http2-head.ts";

const GOOD: Readonly<Record<string, string>> = { ":method": "GET", ":scheme": "https", ":authority": "a.example", ":path": "/" };
const fieldsOf = (change: Readonly<Record<string, string | undefined>>, more: Fields = []): string[] => [...Object.entries({ ...GOOD, ...change }).flatMap(([name, value]) => (value === undefined ? [] : [name, value])), ...more];
/** What is read, or why it is malformed. */
const read = (fields: Fields): unknown => {
  const result = readHttp2Head(fields);
  return result.ok ? result.head : result.complaint;
};

describe("the head of a request in HTTP/2", () => {
  test.each([
    { what: "a plain one", fields: fieldsOf({}), head: { method: "GET", path: "/", names: ["a.example"], fields: [] } },
    { what: "one with Host in the place of :authority", fields: fieldsOf({ ":authority": undefined }, ["host", "a.example:443"]), head: { method: "GET", path: "/", names: ["a.example:443"], fields: [] } },
    { what: "one with both", fields: fieldsOf({}, ["host", "b.example"]), head: { method: "GET", path: "/", names: ["a.example", "b.example"], fields: [] } },
    { what: "OPTIONS for the whole server", fields: fieldsOf({ ":method": "OPTIONS", ":path": "*" }), head: { method: "OPTIONS", path: "*", names: ["a.example"], fields: [] } },
    { what: "one with fields of its own", fields: fieldsOf({ ":path": "/a?b=c%20d" }, ["x-a", "1", "te", "trailers", "x-a", "2"]), head: { method: "GET", path: "/a?b=c%20d", names: ["a.example"], fields: ["x-a", "1", "te", "trailers", "x-a", "2"] } },
  ])("is read: $what", ({ fields, head }) => expect(read(fields)).toEqual(head));

  test.each([
    { what: "no method", fields: fieldsOf({ ":method": undefined }), complaint: "its method is none" },
    { what: "a method with a blank", fields: fieldsOf({ ":method": "GET /" }), complaint: "its method is none" },
    { what: "an empty method", fields: fieldsOf({ ":method": "" }), complaint: "its method is none" },
    { what: "CONNECT", fields: fieldsOf({ ":method": "CONNECT", ":path": undefined, ":scheme": undefined }), complaint: "CONNECT is for a proxy, and this is none; WebSocket is spoken over HTTP/1.1 here" },
    { what: "extended CONNECT", fields: fieldsOf({ ":method": "CONNECT", ":protocol": "websocket" }), complaint: "CONNECT is for a proxy, and this is none; WebSocket is spoken over HTTP/1.1 here" },
    { what: "no scheme", fields: fieldsOf({ ":scheme": undefined }), complaint: 'its scheme is "" and it came by https' },
    { what: "the scheme http", fields: fieldsOf({ ":scheme": "http" }), complaint: 'its scheme is "http" and it came by https' },
    { what: "no path", fields: fieldsOf({ ":path": undefined }), complaint: "its path is none" },
    { what: "an empty path", fields: fieldsOf({ ":path": "" }), complaint: "its path is none" },
    { what: "a star for another method than OPTIONS", fields: fieldsOf({ ":path": "*" }), complaint: "its path is none" },
    { what: "a line break in its path", fields: fieldsOf({ ":path": "/ HTTP/1.1\r\nHost: b.example" }), complaint: "its path is none" },
    { what: "letters beyond ASCII in its path", fields: fieldsOf({ ":path": "/ü" }), complaint: "its path is none" },
    { what: "no host", fields: fieldsOf({ ":authority": undefined }), complaint: "it has no :authority" },
    { what: "several Host", fields: fieldsOf({}, ["host", "a.example", "host", "a.example"]), complaint: "it has several Host" },
    { what: "an empty host", fields: fieldsOf({ ":authority": "" }), complaint: 'its host "" is no host' },
    { what: "a user before its host", fields: fieldsOf({ ":authority": "b.example@a.example" }), complaint: 'its host "b.example@a.example" is no host' },
    { what: "several hosts in one", fields: fieldsOf({}, ["host", "a.example, b.example"]), complaint: 'its host "a.example, b.example" is no host' },
    { what: "a NUL in a field", fields: fieldsOf({}, ["x-a", "1\0:authority\0b.example"]), complaint: "a field holds a line break or NUL" },
    { what: "a line break in the name of a field", fields: fieldsOf({}, ["x-a\r\nhost", "b.example"]), complaint: "a field holds a line break or NUL" },
  ])("is malformed: $what", ({ fields, complaint }) => expect(read(fields)).toBe(complaint));

  test("that is accepted has one meaning, whatever it is made of: 100,000 of them", () => {
    const word = fc.oneof(fc.constantFrom(...Object.keys(GOOD), ...Object.values(GOOD), ":protocol", "host", "connection", "te", "trailers", "a.example:443", "b.example", "Transfer-Encoding", "chunked", "*", "/x", "CONNECT", "https://b.example/", "\0", "\r\n"), fc.string({ maxLength: 8, unit: "binary-ascii" }));
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), fc.boolean(), (words, whole) => {
        const result = readHttp2Head(whole ? [...fieldsOf({}), ...words] : words);
        if (!result.ok) return;
        const { method, path, names, fields } = result.head;
        const isRight = /^[^\s"(),/:;<=>?@[\\\]{}\0]+$/.test(method) && method !== "CONNECT" && (path === "*" || /^\/[!-~]*$/.test(path)) && names.length > 0 && names.every((name) => parseHostPort(name).ok) && fields.length % 2 === 0;
        const isClean = fields.every((text, at) => !/[\0\r\n]/.test(text) && (at % 2 === 1 || !(text.startsWith(":") || ["host", "connection", "transfer-encoding", "upgrade", "keep-alive"].includes(text))));
        expect({ isRight, isClean, head: result.head }).toMatchObject({ isRight: true, isClean: true });
      }),
      { seed: 4, numRuns: 100_000 },
    );
  });
});

describe("fields that concern one connection only", () => {
  test("are left out, in whatever case, and those that are named as well", () => {
    const raw = ["Connection", "x-a", "Keep-Alive", "timeout=5", "Proxy-Authenticate", "Basic", "Transfer-Encoding", "chunked", "Upgrade", "h2c", "TE", "gzip", "X-A", "1", "X-B", "2", ":status", "200"];
    expect(dropHopFields(raw, new Set(["x-a"]))).toEqual(["x-b", "2"]);
  });

  test("leave TE where it says nothing but trailers", () => {
    expect(dropHopFields(["te", "trailers", "te", "trailers, gzip"])).toEqual(["te", "trailers"]);
  });
});

describe("looking for a field", () => {
  test("finds the last of that name, and no value that reads like it", () => {
    expect(findField(["x-a", "x-b", "X-B", "1", "x-b", "2"], "x-b")).toBe("2");
    expect(findField(["x-a", "x-b"], "x-b")).toBeUndefined();
  });
});
