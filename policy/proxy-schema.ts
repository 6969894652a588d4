import { z } from "zod";
import { judgedString, blockWord, parseListEntry, plainText, privateRange } from "./config-words.ts";
import { PREFLIGHT_MODES } from "./preflight-mode.ts";
import { parseAdminListener, parseListener, parseUnixSocket, parseUpstream } from "./proxy-words.ts";
import type { PublicSuffixTest } from "./wildcard-check.ts";

/** Makes the schema of `[network_proxy]`: of boxes, and the whole of what `agentbox proxy --config FILE` reads. */
export function makeProxySchema(isPublicSuffix?: PublicSuffixTest) {
  const domain = judgedString((text) => parseListEntry(text, isPublicSuffix));
  const listener = judgedString((text) => parseListener(text));

  const policy = z.strictObject({
    allowed_domains: z.array(domain).optional().describe("Hosts to allow, as in allow_hosts: host, host:port, *.host (the host itself included)."),
    denied_domains: z.array(blockWord).optional().describe("Hosts to deny, whatever allows them."),
    allow_unix_sockets: z.array(judgedString((text) => parseUnixSocket(text))).optional().describe("Sockets of this machine: absolute paths, $SSH_AUTH_SOCK or ssh-agent."),
    allow_local_binding: z.boolean().optional().describe("Allowed names and addresses may be those of this machine's loopback."),
    allow_private: z.array(privateRange).optional().describe("CIDR blocks of private addresses that allowed names may lead to."),
  });

  const mitm = z.strictObject({
    enabled: z.boolean().optional().describe("Open TLS with certificates of an own authority, to judge what is inside."),
    inspect: z.boolean().optional().describe("Write down the sizes of bodies, never the bodies."),
    max_body_bytes: z.int().min(0).max(1_073_741_824).optional().describe("Count at most so many bytes of a body; 4096 when left out."),
    ca_cert_path: plainText.optional().describe("The authority's certificate, relative to this file. Boxes make their own for each session."),
    ca_key_path: plainText.optional().describe("The authority's key, relative to this file."),
    passthrough: z.array(blockWord).optional().describe("Hosts whose TLS is left alone, such as those that pin certificates."),
  });

  return z.strictObject({
    enabled: z.boolean().optional().describe("false: the stand-alone proxy answers 503 to everything."),
    approve: z.boolean().optional().describe("Ask on the terminal about each host that is refused for the first time."),
    proxy_url: listener.optional().describe("Where the HTTP proxy listens; http://127.0.0.1:3128 when left out."),
    enable_socks5: z.boolean().optional().describe("Listen for SOCKS5; true when left out."),
    socks_url: listener.optional().describe("Where SOCKS5 listens; http://127.0.0.1:8081 when left out."),
    admin_url: judgedString((text) => parseAdminListener(text)).optional().describe("Where the admin API listens: http://127.0.0.1:8080 when left out, or unix:/PATH."),
    mode: z.enum(["limited", "full"]).optional().describe("limited: GET, HEAD and OPTIONS only. full: all methods."),
    preflight_mode: z.enum(PREFLIGHT_MODES).optional().describe("strict: only URLs among the arguments. heuristic: whatever a known tool obviously needs."),
    dangerously_allow_non_loopback_proxy: z.boolean().optional().describe("Let proxy_url and socks_url listen on other addresses than loopback."),
    dangerously_allow_non_loopback_admin: z.boolean().optional().describe("Let admin_url listen on other addresses than loopback."),
    upstream_proxy: judgedString((text) => parseUpstream(text)).optional().describe("The site's proxy that everything leaves through: http://HOST:PORT or https://HOST:PORT."),
    policy: policy.optional().describe("Which hosts the proxy lets through."),
    mitm: mitm.optional().describe("Interception of TLS."),
  });
}

export type ProxyConfig = z.infer<ReturnType<typeof makeProxySchema>>;
