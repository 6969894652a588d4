/** How a program writes its options. */
export type OptionForm = {
  /** Those that take their value from the next word, if it is not attached: `-o`, `--output`. */
  valued: ReadonlySet<string>;
  /** The first operand ends the options: what follows is another program's. */
  stops?: boolean;
  /** Long options have one dash. */
  singleDash?: boolean;
};

/** The words of a program taken apart. A value is undefined where none was given. */
export type OptionReading = { options: readonly { name: string; value: string | undefined }[]; operands: readonly string[] };

/** Makes a set of names that are written with blanks between them. */
export function listNames(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}

/** Takes the words after a program's name apart: `--name value`, `--name=value`, `-nvalue`, `-abn value`, and `--`. What is not known to take a value takes none. */
export function readOptions(words: readonly string[], { valued, stops = false, singleDash = false }: OptionForm): OptionReading {
  const options: { name: string; value: string | undefined }[] = [];
  const operands: string[] = [];
  let index = 0;
  const next = (): string | undefined => {
    index += 1;
    return words[index];
  };
  for (; index < words.length; index += 1) {
    const word = words[index] ?? "";
    if (word === "--") return { options, operands: [...operands, ...words.slice(index + 1)] };
    if (!word.startsWith("-") || word === "-") {
      if (stops) return { options, operands: words.slice(index) };
      operands.push(word);
    } else if (word.startsWith("--") || singleDash) {
      const equals = word.indexOf("=");
      const name = equals === -1 ? word : word.slice(0, equals);
      options.push({ name, value: equals === -1 ? (valued.has(name) ? next() : undefined) : word.slice(equals + 1) });
    } else {
      for (let at = 1; at < word.length; at += 1) {
        const name = `-${word[at] ?? ""}`;
        const takes = valued.has(name);
        options.push({ name, value: takes ? word.slice(at + 1) || next() : undefined });
        if (takes) break;
      }
    }
  }
  return { options, operands };
}

/** Lists the values that any of these options was given. */
export function valuesOf({ options }: OptionReading, names: ReadonlySet<string>): string[] {
  return options.flatMap(({ name, value }) => (value !== undefined && names.has(name) ? [value] : []));
}

/** Tells whether any of these options was given. */
export function hasOption({ options }: OptionReading, names: ReadonlySet<string>): boolean {
  return options.some(({ name }) => names.has(name));
}
