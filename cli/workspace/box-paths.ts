/** Home directory of the box's user: a volume, the same path whoever the host user is. */
export const BOX_HOME = "/home/agent";
export const BOX_CACHE = `${BOX_HOME}/.cache`;
export const BOX_LOGIN = `${BOX_HOME}/.agentbox-login`;
export const BOX_SSH = `${BOX_HOME}/.ssh`;

/** The bundle that the image keeps, the site's own authority included. */
export const BOX_CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";

/**
 * The box's own directories. A host directory is mounted at its own path, so one of these names would
 * hide what the box needs; below those of `BOX_SYSTEM` lie programs that root runs in the box.
 */
export const BOX_OWN: readonly string[] = [
  "/bin",
  "/boot",
  "/dev",
  "/etc",
  "/home",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/opt",
  "/proc",
  "/root",
  "/run",
  "/sbin",
  "/srv",
  "/sys",
  "/tmp",
  "/usr",
  "/var",
  "/var/cache",
  "/var/lib",
  "/var/log",
  "/var/run",
  "/var/tmp",
  BOX_HOME,
  BOX_CACHE,
  BOX_LOGIN,
  BOX_SSH,
];

export const BOX_SYSTEM: readonly string[] = [
  "/bin",
  "/boot",
  "/dev",
  "/etc",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/proc",
  "/run",
  "/sbin",
  "/sys",
  "/usr",
];

/** Where people keep projects below a system directory; nothing of the box runs from there. */
export const BOX_SYSTEM_EXCEPTIONS: readonly string[] = ["/run/media", "/usr/local/src", "/usr/src"];
