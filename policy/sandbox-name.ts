/**
 * One component of a path as rules compare it: NFC, since some disks hand out names decomposed, whatever
 * a program wrote.
 */
export function canonicalName(name: string): string {
  return ASCII.test(name) ? name : name.normalize("NFC");
}

/**
 * One component as a directory compares it that takes `.ENV` for `.env`. Through upper case, where letters with
 * several small forms (ſ, ß, the Kelvin sign) become one, and through lower case before, since ẞ becomes ß there only; and without what such a directory (ext4's casefold)
 * leaves out: an invisible character inside a name would otherwise hide it from every rule.
 */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  return name.normalize("NFD").replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "").toLowerCase().toUpperCase().toLowerCase().normalize("NFC");
}

// Nearly every name is, and normalising costs more than all that follows.
const ASCII = /^[ -~]*$/;
