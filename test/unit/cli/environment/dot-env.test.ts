import fc from "fast-check";
import { expect, test } from "vitest";
import { parseDotEnv } from "../../../../cli/environment/dot-env.ts";

const read = (text: string) => Object.fromEntries(parseDotEnv(text, ".env").variables.map(({ name, value }) => [name, value]));
const flaws = (text: string) => parseDotEnv(text, ".env").complaints.map(({ what, place }) => `${place?.line}: ${what}`);

const files: [string, string, Record<string, string>][] = [
  ["plain, exported and empty values", "A=1\nexport B=two words\nC=\n", { A: "1", B: "two words", C: "" }],
  ["comments and blank lines", "# c\n\n  # d\nA=1 # e\n", { A: "1" }],
  ["quotes, and what looks like a comment in them", "A=\"x # y\"\nB='$HOME'\nC=`b`\n", { A: "x # y", B: "$HOME", C: "b" }],
  ["values over several lines", 'KEY="-----BEGIN\nabc=\n-----END"\nB=1\n', { KEY: "-----BEGIN\nabc=\n-----END", B: "1" }],
  ["line ends of Windows and a byte order mark", "\u{feff}A=1\r\nB=2\r\n", { A: "1", B: "2" }],
  ["an equals sign in a value", "URL=http://h/?a=b\n", { URL: "http://h/?a=b" }],
  ["the last of two assignments", "A=1\nA=2\n", { A: "2" }],
];
test.each(files)("reads %s", (_name, text, expected) => {
  expect(read(text)).toEqual(expected);
  expect(flaws(text)).toEqual([]);
});

const bad: [string, string, string[]][] = [
  ["a line that sets nothing", "A=1\nhello world\n=x\n", ["2: this line does not set one variable", "3: this line does not set one variable"]],
  ["a quote that is never closed, without losing the next line", 'A="x\nB=1\n', ["1: a quote is opened here and never closed"]],
  ["names that no shell takes", "1X=2\na.b=3\nÄ=1\n", ['1: "1X" is no name of a variable', '2: "a.b" is no name of a variable', '3: "Ä" is no name of a variable']],
];
test.each(bad)("complains about %s", (_name, text, expected) => expect(flaws(text)).toEqual(expected));

test("never shows a value in a complaint", () => {
  const { complaints } = parseDotEnv(`TOKEN="s3cret\na-b=s3cret\nA=s3cret\0`, ".env");
  expect(complaints).not.toEqual([]);
  expect(JSON.stringify([...complaints, ...parseDotEnv('T="s3cret\na-b=s3cret', ".env").complaints])).not.toContain("s3cret");
});

test("reads back what is written in single quotes, whatever stands in it", () => {
  const value = fc.string({ unit: "binary" }).filter((text) => !/['\0\r]/.test(text));
  fc.assert(fc.property(fc.array(value), (values) => {
    const text = values.map((one, at) => `V${at}='${one}'`).join("\n");
    expect(read(text)).toEqual(Object.fromEntries(values.map((one, at) => [`V${at}`, one])));
  }));
});

test("takes any text without throwing, and answers for every line that is neither blank nor a comment", () => {
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
    const { variables, complaints } = parseDotEnv(text, ".env");
    const isBlank = /^[\s\u{feff}]*$/u.test(text) || /^[\s\u{feff}]*#/mu.test(text);
    expect(isBlank || variables.length + complaints.length > 0).toBe(true);
    for (const { name } of variables) expect(name).toMatch(/^[A-Za-z_]\w*$/);
  }));
});
