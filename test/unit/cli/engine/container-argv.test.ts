import { expect, test } from "vitest";
import { renderCreateArgv } from "../../../../cli/engine/container-argv.ts";
import type { ContainerPlan, EngineTraits } from "../../../../cli/engine/container-plan.ts";

const docker: EngineTraits = { kind: "docker", rootless: false, selinux: false, hostOptions: [] };

const plan: ContainerPlan = {
  name: "agentbox-1",
  role: "box",
  image: "agentbox:0123456789ab",
  session: "1",
  owner: "me",
  project: "/p",
  home: "/h",
  terminal: false,
  user: { uid: 0, gid: 0 },
  firewall: true,
  jsonLog: false,
  network: { kind: "bridge", name: "bridge", disableIpv6: true },
  mounts: [
    { kind: "bind", source: "/p", target: "/p", readOnly: false },
    { kind: "bind", source: "/p/.git/hooks", target: "/p/.git/hooks", readOnly: true },
    { kind: "volume", name: "agentbox-home-claude-abc", target: "/home/agent" },
    { kind: "volume", name: "agentbox-login-claude-0", target: "/home/agent/.agentbox-login" },
    { kind: "tmpfs", target: "/scratch", options: ["size=1m"] },
  ],
  ports: [{ address: "127.0.0.1", host: 8080, container: 80, protocol: "tcp" }],
  dns: ["9.9.9.9"],
  addHosts: [{ name: "db", address: "10.0.0.5" }],
  memory: undefined,
  cpus: undefined,
  seccomp: "/s/seccomp.json",
};

test("a firewalled box of Docker is created with exactly these arguments", () => {
  expect(renderCreateArgv(plan, docker).join(" ")).toBe(
    [
      "create --name agentbox-1 --pull never --interactive",
      "--label agentbox.session=1 --label agentbox.owner=me --label agentbox.project=/p --label agentbox.role=box",
      "--cap-drop ALL --cap-add NET_ADMIN --cap-add NET_RAW --cap-add SETUID --cap-add SETGID --cap-add SETPCAP --cap-add KILL",
      "--security-opt no-new-privileges --security-opt seccomp=/s/seccomp.json --user 0:0 --read-only --pids-limit 4096",
      "--init --restart no --stop-timeout 10 --log-driver none",
      "--env AGENTBOX_FIREWALL=1",
      "--hostname agentbox --network bridge --sysctl net.ipv6.conf.all.disable_ipv6=1 --dns 9.9.9.9 --add-host db:10.0.0.5 --publish 127.0.0.1:8080:80",
      "--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777 --tmpfs /var/tmp:rw,exec,nosuid,nodev,mode=1777 --tmpfs /run:rw,noexec,nosuid,nodev,mode=755",
      "--mount type=bind,source=/p,target=/p",
      "--mount type=bind,source=/p/.git/hooks,target=/p/.git/hooks,readonly",
      "--mount type=volume,source=agentbox-home-claude-abc,target=/home/agent,volume-label=agentbox.project=/p,volume-label=agentbox.home=/h",
      "--mount type=volume,source=agentbox-login-claude-0,target=/home/agent/.agentbox-login",
      "--tmpfs /scratch:size=1m",
      "agentbox:0123456789ab",
    ].join(" "),
  );
});

test("a holder has the rights over the network, a name of its own, and nobody speaks to it", () => {
  const tmpfs = { kind: "tmpfs", target: "/var/lib/agentbox-keeper/run", options: ["mode=777"] } as const;
  expect(render({ role: "holder", name: "agentbox-1-net", mounts: [tmpfs] })).toBe(
    [
      "create --name agentbox-1-net --pull never",
      "--label agentbox.session=1 --label agentbox.owner=me --label agentbox.project=/p --label agentbox.role=holder",
      "--cap-drop ALL --cap-add NET_ADMIN --cap-add NET_RAW --cap-add SETUID --cap-add SETGID --cap-add SETPCAP --cap-add KILL",
      "--security-opt no-new-privileges --security-opt seccomp=/s/seccomp.json --user 0:0 --read-only --pids-limit 4096",
      "--init --restart no --stop-timeout 10 --log-driver none",
      "--env AGENTBOX_FIREWALL=1",
      "--hostname agentbox --network bridge --sysctl net.ipv6.conf.all.disable_ipv6=1 --dns 9.9.9.9 --add-host db:10.0.0.5 --publish 127.0.0.1:8080:80",
      "--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777 --tmpfs /var/tmp:rw,exec,nosuid,nodev,mode=1777 --tmpfs /run:rw,noexec,nosuid,nodev,mode=755",
      "--tmpfs /var/lib/agentbox-keeper/run:mode=777",
      "agentbox:0123456789ab",
    ].join(" "),
  );
});

test("the agent's container of a sidecar joins the holder's namespace with no right at all", () => {
  const joined = render({ role: "agent", user: { uid: 501, gid: 20 }, network: { kind: "container", name: "agentbox-1-net" }, mounts: [], memory: "2g", cpus: 1.5 });
  expect(joined).toBe(
    [
      "create --name agentbox-1 --pull never --interactive",
      "--label agentbox.session=1 --label agentbox.owner=me --label agentbox.project=/p --label agentbox.role=agent",
      "--cap-drop ALL --security-opt no-new-privileges --security-opt seccomp=/s/seccomp.json --user 501:20 --read-only --pids-limit 4096",
      "--memory 2g --cpus 1.5 --init --restart no --stop-timeout 10 --log-driver none",
      "--env AGENTBOX_FIREWALL=1",
      "--network container:agentbox-1-net",
      "--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777 --tmpfs /var/tmp:rw,exec,nosuid,nodev,mode=1777 --tmpfs /run:rw,noexec,nosuid,nodev,mode=755",
      "agentbox:0123456789ab",
    ].join(" "),
  );
});

function render(change: Partial<ContainerPlan>, engine: Partial<EngineTraits> = {}): string {
  return renderCreateArgv({ ...plan, ...change }, { ...docker, ...engine }).join(" ");
}

test("without the firewall a box gets no rights over the network", () => {
  const argv = render({ firewall: false });
  expect(argv).not.toMatch(/NET_ADMIN|NET_RAW/);
  expect(argv).toContain("--cap-drop ALL --cap-add SETUID --cap-add SETGID --cap-add SETPCAP --cap-add KILL --security-opt");
  expect(argv).toContain("AGENTBOX_FIREWALL=0");
});

test("a box without network has none, and publishes and resolves nothing", () => {
  const argv = render({ network: { kind: "none" } });
  expect(argv).toContain("--network none");
  expect(argv).not.toMatch(/--publish|--dns|--sysctl/);
});

test.each([
  { name: "a terminal is asked for only where there is one", argv: render({ terminal: true }), has: "--interactive --tty" },
  { name: "JSON lines are asked for by the environment", argv: render({ jsonLog: true }), has: "--env AGENTBOX_LOG=json" },
  { name: "labels of files are not checked on a host that labels them", argv: render({}, { selinux: true }), has: "--security-opt label=disable" },
  { name: "a rootless Podman keeps the user's ids", argv: render({}, { kind: "podman", rootless: true }), has: "--userns keep-id" },
  { name: "the agent's container joins its holder's user namespace in a rootless Podman", argv: render({ role: "agent", network: { kind: "container", name: "h" } }, { kind: "podman", rootless: true }), has: "--userns container:h" },
  { name: "Podman lets the box's resolver have port 53", argv: render({}, { kind: "podman" }), has: "--sysctl net.ipv4.ip_unprivileged_port_start=0" },
  { name: "a rootless Docker does, too", argv: render({}, { rootless: true }), has: "--sysctl net.ipv4.ip_unprivileged_port_start=0" },
  { name: "what the engine needs on this host is given", argv: render({}, { hostOptions: ["--init-path", "/usr/bin/tini"] }), has: "--init-path /usr/bin/tini --init" },
  { name: "an IPv6 address is published in brackets", argv: render({ ports: [{ address: "::1", host: 1, container: 2, protocol: "udp" }] }), has: "--publish [::1]:1:2/udp" },
])("$name", ({ argv, has }) => {
  expect(argv).toContain(has);
});

test("Podman is not given the volume labels it does not know", () => {
  expect(render({}, { kind: "podman" })).not.toContain("volume-label");
});

test("nothing of the agent's environment is in the container's", () => {
  const argv = renderCreateArgv(plan, docker);
  expect(argv.filter((_, index) => argv[index - 1] === "--env")).toEqual(["AGENTBOX_FIREWALL=1"]);
});
