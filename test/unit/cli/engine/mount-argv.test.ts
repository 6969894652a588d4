import fc from "fast-check";
import { expect, test } from "vitest";
import { renderMount } from "../../../../cli/engine/mount-argv.ts";

/** Reads one line of CSV as RFC 4180 has it, which is how the engines read `--mount`. */
function parseCsv(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? "");
}

test("a path of any characters arrives as it is", () => {
  const anyPath = fc.string({ unit: fc.constantFrom("a", " ", ",", '"', "=", ":", "\n", "ü", "'", "\\") }).map((text) => `/${text}`);
  fc.assert(
    fc.property(anyPath, anyPath, fc.boolean(), (source, target, readOnly) => {
      const fields = parseCsv(renderMount({ kind: "bind", source, target, readOnly }, []));
      expect(fields).toEqual(["type=bind", `source=${source}`, `target=${target}`, ...(readOnly ? ["readonly"] : [])]);
    }),
  );
});
