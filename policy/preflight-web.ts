import { hasOption, listNames, type OptionReading, readOptions, valuesOf } from "./command-options.ts";
import { isLoopback } from "./loopback.ts";
import { parseHost } from "./host-name.ts";
import type { Need } from "./preflight-need.ts";
import { readAuthority, readUrl } from "./preflight-place.ts";

const CURL_VALUED = listNames(
  "-A -b -c -C -d -D -e -E -F -H -K -m -o -P -Q -r -t -T -u -U -w -x -X -y -Y -z --abstract-unix-socket --alt-svc --aws-sigv4 --cacert --capath --cert --cert-type --ciphers --config --connect-timeout --connect-to --continue-at --cookie --cookie-jar --create-file-mode --crlfile --curves --data --data-ascii --data-binary --data-raw --data-urlencode --delegation --dns-interface --dns-ipv4-addr --dns-ipv6-addr --dns-servers --doh-url --dump-header --ech --engine --etag-compare --etag-save --expect100-timeout --form --form-string --ftp-account --ftp-alternative-to-user --ftp-method --ftp-port --ftp-ssl-ccc-mode --happy-eyeballs-timeout-ms --haproxy-clientip --header --hostpubmd5 --hostpubsha256 --hsts --interface --ip-tos --ipfs-gateway --json --keepalive-time --key --key-type --krb --libcurl --limit-rate --local-port --login-options --mail-auth --mail-from --mail-rcpt --max-filesize --max-redirs --max-time --netrc-file --noproxy --oauth2-bearer --output --output-dir --parallel-max --pass --pinnedpubkey --preproxy --proto --proto-default --proto-redir --proxy --proxy-cacert --proxy-cert --proxy-header --proxy-key --proxy-user --pubkey --quote --random-file --range --rate --referer --request --request-target --resolve --retry --retry-delay --retry-max-time --sasl-authzid --service-name --socks4 --socks4a --socks5 --socks5-hostname --speed-limit --speed-time --stderr --telnet-option --tftp-blksize --time-cond --tls-max --tls13-ciphers --tlsauthtype --tlspassword --tlsuser --trace --trace-ascii --trace-config --unix-socket --upload-file --url --url-query --user --user-agent --variable --vlan-priority --write-out",
);
const WGET_VALUED = listNames(
  "-a -A -B -D -e -i -I -l -o -O -P -Q -R -t -T -U -w -X --accept --accept-regex --append-output --base --bind-address --body-data --body-file --ca-certificate --ca-directory --certificate --certificate-type --ciphers --config --connect-timeout --cut-dirs --default-page --directory-prefix --dns-timeout --domains --exclude-directories --exclude-domains --execute --follow-tags --header --hsts-file --ignore-tags --include-directories --input-file --level --limit-rate --load-cookies --local-encoding --max-redirect --method --output-document --output-file --password --pinnedpubkey --post-data --post-file --prefer-family --private-key --progress --proxy-password --proxy-user --quota --read-timeout --referer --regex-type --reject --reject-regex --remote-encoding --report-speed --restrict-file-names --save-cookies --secure-protocol --start-pos --timeout --tries --use-askpass --user --user-agent --wait --waitretry --warc-file",
);
const HTTPIE_VALUED = listNames("-a -A -o -p -P -s --auth --auth-type --bodyfile --cert --cert-key --ciphers --format-options --output --pretty --print --proxy --session --session-read-only --ssl --style --timeout --verify");

const URL_OPTION = listNames("--url");
const PROXY = listNames("-x --proxy --preproxy --socks4 --socks4a --socks5 --socks5-hostname");
const UNIX_SOCKET = listNames("--unix-socket");
const METHOD = listNames("-X --request --method");
const HEAD = listNames("-I --head --spider");
const GET = listNames("-G --get");
const UPLOAD = listNames("-T --upload-file");
const BODY = listNames("-d --data --data-ascii --data-binary --data-raw --data-urlencode --json -F --form --form-string --post-data --post-file");

/** Finds where curl connects to: a socket or a proxy in the place of its URLs. */
export function findCurlNeeds(words: readonly string[]): Need[] {
  const reading = readOptions(words, { valued: CURL_VALUED });
  const sockets = valuesOf(reading, UNIX_SOCKET);
  if (sockets.length > 0) return sockets.map((socket) => ({ kind: "socket", program: "curl", socket, sure: false }));
  const proxies = valuesOf(reading, PROXY).flatMap((text) => readUrl(text) ?? readAuthority(text.replace(/^[a-z0-9]+:\/\//i, ""), 1080) ?? []);
  // A proxy on this machine is another program's affair, and that of the name wall.
  const far = proxies.filter(({ host }) => !isHere(host));
  if (far.length > 0) return far.map(({ host, port }) => ({ kind: "host", program: "curl", host, port, form: "remote" }));
  return readTargets("curl", [...valuesOf(reading, URL_OPTION), ...reading.operands], findMethod(reading));
}

/** Finds where wget connects to. */
export function findWgetNeeds(words: readonly string[]): Need[] {
  const reading = readOptions(words, { valued: WGET_VALUED });
  return readTargets("wget", reading.operands, findMethod(reading));
}

/** Finds where HTTPie connects to: `http [METHOD] URL`. */
export function findHttpieNeeds(words: readonly string[], program: string): Need[] {
  const { operands } = readOptions(words, { valued: HTTPIE_VALUED });
  const method = /^[A-Z]+$/.test(operands[0] ?? "") ? operands[0] : undefined;
  const target = operands[method === undefined ? 0 : 1];
  if (target === undefined) return [];
  return readTargets(program, [program === "https" && readUrl(target) === undefined ? `https://${target}` : target], method);
}

/** Both take `example.com/x` for http. */
function readTargets(program: string, targets: readonly string[], method: string | undefined): Need[] {
  return targets.flatMap((text): Need[] => {
    const place = readUrl(text);
    if (place !== undefined) return [{ kind: "host", program, form: "url", method, ...place }];
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return [];
    const bare = readAuthority(text.replace(/[/?#][^]*$/, "").replace(/^[^/]*@/, ""), 80);
    return bare === undefined || !bare.host.includes(".") ? [] : [{ kind: "host", program, form: "remote", method, ...bare, web: "http" }];
  });
}

function findMethod(reading: OptionReading): string | undefined {
  const named = valuesOf(reading, METHOD).at(-1);
  if (named !== undefined) return named;
  if (hasOption(reading, HEAD)) return "HEAD";
  if (hasOption(reading, UPLOAD)) return "PUT";
  return hasOption(reading, BODY) && !hasOption(reading, GET) ? "POST" : undefined;
}

function isHere(text: string): boolean {
  const host = parseHost(text);
  return host.ok && isLoopback(host.value);
}
