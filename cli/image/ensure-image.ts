import { rm } from "node:fs/promises";
import path from "node:path";
import { type Builder, findBuilder, renderBuildArgv } from "../engine/build.ts";
import type { Engine } from "../engine/engine.ts";
import { hasImage } from "../engine/images.ts";
import type { SiteProxy } from "../environment/site-proxy.ts";
import { makePrivateDirectory } from "../session/home.ts";
import type { Report } from "../ui/report.ts";
import { provideBase } from "./base.ts";
import { explainBuildFailure } from "./build-failure.ts";
import { withBuildLock } from "./build-lock.ts";
import { parseBuildLine } from "./build-progress.ts";
import { type ContextFile, hashContext, readContext, writeContext } from "./context.ts";
import type { ImageSettings } from "./settings.ts";

const buildLimitMs = 3_600_000;

export type ImageRequest = {
  engine: Engine;
  /** Top level of the installation. */
  root: string;
  agentboxHome: string;
  settings: ImageSettings;
  /** Certificates (PEM) of the site's own authority. */
  certificates: readonly string[];
  user: { uid: number; gid: number };
  /** Builds although the image is there. */
  rebuild: boolean;
  /** Fetches or makes the base anew, too. */
  renewBase: boolean;
  /** The site's proxy, which serves the build only. */
  proxy: Pick<SiteProxy, "buildArgs" | "onHostLoopback">;
  report: Report;
  signal: AbortSignal;
};

/** Names the image that the settings, the installation and the user make. */
export async function nameImage(request: Pick<ImageRequest, "root" | "certificates" | "settings" | "user">): Promise<{ tag: string; hash: string; files: ContextFile[]; args: Record<string, string> }> {
  const { settings, user } = request;
  const files = await readContext(request.root, request.certificates);
  const args = {
    AGENTS: settings.agents.join(" "),
    PACKAGES: settings.packages.join(" "),
    AGENT_UID: String(user.uid),
    AGENT_GID: String(user.gid),
  };
  // The base counts as it was asked for: one that had to be made here is not another image.
  const hash = hashContext(files, { ...args, BASE: settings.base });
  return { tag: `agentbox:${hash.slice(0, 12)}`, hash, files, args };
}

/** Makes sure that the engine has the image, building it when it is missing, and returns its tag and whether it was built. */
export async function ensureImage(request: ImageRequest): Promise<{ tag: string; built: boolean }> {
  const named = await nameImage(request);
  if (!request.rebuild && (await hasImage(request.engine, named.tag))) return { tag: named.tag, built: false };
  return await withBuildLock(request.agentboxHome, request.signal, async () => {
    if (!request.rebuild && (await hasImage(request.engine, named.tag))) return { tag: named.tag, built: false };
    const { engine, root, settings, renewBase, proxy, report, signal } = request;
    const base = await provideBase({ engine, root, base: settings.base, renew: renewBase, env: proxy.buildArgs, report, signal });
    // Of one name, which the lock allows: what a killed build left is replaced by the next one.
    const directory = path.join(request.agentboxHome, "build");
    await rm(directory, { recursive: true, force: true });
    try {
      await makePrivateDirectory(directory);
      await writeContext(directory, named.files);
      const labels = { "agentbox.hash": named.hash, "agentbox.home": request.agentboxHome, "agentbox.epoch": settings.epoch };
      const args = { BASE_IMAGE: base, ...named.args, AGENTS_EPOCH: settings.epoch, ...proxy.buildArgs };
      await runBuild(request, renderBuildArgv.bind(undefined, { context: directory, tag: named.tag, args, labels, hostNetwork: proxy.onHostLoopback }));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
    return { tag: named.tag, built: true };
  });
}

async function runBuild({ engine, report, signal }: ImageRequest, renderArgv: (builder: Builder) => string[]): Promise<void> {
  const builder = await findBuilder(engine);
  const lines: string[] = [];
  let step = "";
  const onLine = (line: string): void => {
    lines.push(line);
    const announced = parseBuildLine(line);
    if (announced === undefined) return;
    step = announced.text;
    report({ event: "progress", step: "image", done: announced.number, total: announced.total });
  };
  const result = await engine.client.call(renderArgv(builder), { timeoutMs: buildLimitMs, signal, env: builder.env, onLine });
  signal.throwIfAborted();
  if (result.exitCode !== 0) throw explainBuildFailure(step, lines);
}
