import { matchesPattern, type Pattern } from "./pattern.ts";

/** When the names below were last looked at. */
export const SHARED_STORES_DATE = "2026-11-21";

/** Domains behind which anybody may put anything: who opens one of them opens a way in and out for everybody. */
const STORES: readonly string[] = [
  "storage.googleapis.com",
  "storage.cloud.google.com",
  "firebaseio.com",
  "firebasestorage.googleapis.com",
  "firebasestorage.app",
  "web.app",
  "run.app",
  "appspot.com",
  "amazonaws.com",
  "cloudfront.net",
  "blob.core.windows.net",
  "azureedge.net",
  "azurewebsites.net",
  "r2.dev",
  "r2.cloudflarestorage.com",
  "workers.dev",
  "pages.dev",
  "github.io",
  "gist.githubusercontent.com",
  "gitlab.io",
  "netlify.app",
  "vercel.app",
  "herokuapp.com",
  "fly.dev",
  "ngrok.io",
  "ngrok.app",
  "ngrok-free.app",
  "trycloudflare.com",
  "pastebin.com",
  "transfer.sh",
  "webhook.site",
];

const PATTERNS: readonly Pattern[] = STORES.map((suffix) => ({ kind: "apex-and-below", suffix }));

/** Finds the shared store that a canonical name belongs to, or that a wildcard below this domain would open; undefined where there is none. */
export function findSharedStore(name: string, wildcard = false): string | undefined {
  const store = PATTERNS.findIndex((pattern, index) => matchesPattern(pattern, name) || (wildcard && STORES[index]?.endsWith(`.${name}`) === true));
  return STORES[store];
}
