import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Need } from "../../../policy/preflight-need.ts";
import { findNeeds } from "../../../policy/preflight-needs.ts";

/** `program host:port`, or `program socket`, with a mark where nothing else serves. */
function show(need: Need): string {
  return need.kind === "host" ? `${need.program} ${need.host}:${need.port}` : `${need.program} ${need.socket}${need.sure ? "!" : ""}`;
}

const look = (script: string): string[] => findNeeds({ script }, "heuristic").map(show);
const placesOf = (found: readonly string[]): string[] => found.map((each) => each.replace(/^\S+ /, ""));
const lookStrictly = (script: string): string[] => findNeeds({ script }, "strict").map(show);

describe("what a command line obviously needs", () => {
  test.each<[string, string, string[]]>([
    ["curl and a URL", "curl -fsSL https://a.example/x?y=1#z", ["curl a.example:443"]],
    ["curl and several", "curl https://a.example http://b.example:8080 --url ftp://c.example", ["curl c.example:21", "curl a.example:443", "curl b.example:8080"]],
    ["curl and a host without a scheme", "curl a.example/x", ["curl a.example:80"]],
    ["curl and an address", "curl https://[2001:db8::1]:8443/ 192.0.2.1", ["curl 2001:db8::1:8443", "curl 192.0.2.1:80"]],
    ["curl with a password in the URL", "curl https://me:pw@a.example/", ["curl a.example:443"]],
    ["curl and nothing that only looks like a target", "curl -o b.txt -e https://c.example -H 'Host: d.example' -d https://e.example --resolve f.example:443:192.0.2.1 https://a.example", ["curl a.example:443"]],
    ["a proxy in the place of the target", "curl -x http://p.example:3128 https://a.example", ["curl p.example:3128"]],
    ["the target behind a proxy of this machine", "curl --proxy 127.0.0.1:3128 https://a.example", ["curl a.example:443"]],
    ["a socket in the place of the target", "curl --unix-socket /run/x.sock http://a.example/", ["curl /run/x.sock"]],
    ["wget", "wget -qO - a.example/x -O b.txt https://b.example", ["wget a.example:80", "wget b.example:443"]],
    ["HTTPie", "http POST a.example/x k=v; https b.example", ["http a.example:80", "https b.example:443"]],
    ["git over https", "git -C x clone --depth 1 -b main https://a.example/b.git c", ["git a.example:443"]],
    ["git over ssh", "git clone git@a.example:b/c.git", ["git a.example:22", "git ssh-agent"]],
    ["git over ssh as a URL", "git fetch ssh://git@a.example:2222/b main:main", ["git a.example:2222", "git ssh-agent"]],
    ["git by a command of one's own", "GIT_SSH_COMMAND='ssh -i k' git push git@a.example:b/c.git HEAD:x", ["git a.example:22"]],
    ["git's own protocol", "git ls-remote git://a.example/b", ["git a.example:9418"]],
    ["a submodule", "git submodule add -b main https://a.example/b b", ["git a.example:443"]],
    ["a remote that is fetched at once", "git remote add -f o https://a.example/b", ["git a.example:443"]],
    ["an archive of elsewhere", "git archive --remote=git@a.example:b HEAD", ["git a.example:22", "git ssh-agent"]],
    ["npm's own registry", "npm ci", ["npm registry.npmjs.org:443"]],
    ["another registry", "npm install --registry=https://r.example/ x", ["npm r.example:443"]],
    ["another registry by a variable", "env npm_config_registry=https://r.example npm i x", ["npm r.example:443"]],
    ["packages by URL and by git", "npm i https://a.example/b.tgz c@git+ssh://git@d.example/e.git github:f/g", ["npm a.example:443", "npm d.example:22", "npm ssh-agent", "npm github.com:443", "npm registry.npmjs.org:443"]],
    ["pnpm and yarn", "pnpm add x && yarn && yarn dlx y", ["pnpm registry.npmjs.org:443", "yarn registry.yarnpkg.com:443"]],
    ["pip", "python3 -m pip install -r requirements.txt x", ["pip pypi.org:443", "pip files.pythonhosted.org:443"]],
    ["pip and other indexes", "pip install -i https://i.example/simple --extra-index-url https://j.example 'x @ https://a.example/x.whl'", ["pip a.example:443", "pip i.example:443", "pip j.example:443"]],
    ["uv", "uv pip install x; uv add --default-index https://i.example y; uvx z", ["uv pypi.org:443", "uv files.pythonhosted.org:443", "uv i.example:443"]],
    ["cargo", "cargo install x && cargo publish", ["cargo index.crates.io:443", "cargo static.crates.io:443", "cargo crates.io:443"]],
    ["cargo and a repository", "cargo install --git https://a.example/b", ["cargo a.example:443"]],
    ["go", "go install golang.org/x/tools/gopls@latest; go mod download", ["go proxy.golang.org:443", "go sum.golang.org:443"]],
    ["go without its proxy", "GOPROXY=direct GONOSUMDB=x go get a.example/m", ["go a.example:443"]],
    ["apt", "sudo apt-get update && sudo apt-get install -y jq", ["apt-get deb.debian.org:80"]],
    ["gh", "gh pr list -R a/b; gh repo clone a/b; gh api --hostname h.example x", ["gh api.github.com:443", "gh github.com:443", "gh h.example:443"]],
    ["ssh", "ssh -p 2222 -o StrictHostKeyChecking=no me@a.example -v uptime https://b.example", ["ssh a.example:2222", "ssh ssh-agent"]],
    ["ssh with a key", "ssh -i key a.example", ["ssh a.example:22"]],
    ["ssh that hands the agent on", "ssh -A -i key a.example", ["ssh a.example:22", "ssh ssh-agent!"]],
    ["ssh by its options", "ssh -o HostName=b.example -o 'Port 24' -o IdentityFile=k a.example", ["ssh b.example:24"]],
    ["ssh over another host", "ssh -J me@j.example:23,k.example a.example", ["ssh j.example:23", "ssh ssh-agent"]],
    ["the agent itself", "ssh-add -l", ["ssh-add ssh-agent!"]],
    ["scp, sftp and rsync", "scp -P 24 a me@a.example:b; sftp me@b.example; rsync -e 'ssh -p 25 -i k' a c.example:d; rsync rsync://d.example/m e.example::m .", ["scp a.example:24", "scp ssh-agent", "sftp b.example:22", "rsync c.example:25", "rsync d.example:873", "rsync e.example:873"]],
    ["docker's socket", "docker run x", ["docker /var/run/docker.sock!"]],
    ["docker elsewhere", "DOCKER_HOST=tcp://d.example:2376 docker ps; docker -H unix:///run/user/1/docker.sock ps", ["docker d.example:2376", "docker /run/user/1/docker.sock!"]],
    ["openssl", "openssl s_client -connect a.example:8443 -servername b.example; openssl x509 -in c.example:443", ["openssl a.example:8443"]],
    ["clients of databases", "psql -h a.example -p 5433 -U me db; psql -d postgres://b.example/db; PGHOST=c.example pg_dump db; mysql -hd.example -uroot; mysql -P 3307 -h e.example; redis-cli -h f.example ping; psql db; psql -h /run/sock", ["psql a.example:5433", "psql b.example:5432", "pg_dump c.example:5432", "mysql d.example:3306", "mysql e.example:3307", "redis-cli f.example:6379"]],
    ["Bundler and Composer", "bundle install; bundle install --local; bundle exec rake; composer require a/b; composer test", ["bundle rubygems.org:443", "bundle index.rubygems.org:443", "composer repo.packagist.org:443"]],
    ["a plain connection", "nc -zv -w 3 a.example 25; telnet b.example; exec 3<>/dev/tcp/c.example/80", ["nc a.example:25", "telnet b.example:23", "bash c.example:80"]],
    ["a program that is not known", "fetch-it https://a.example/x", ["fetch-it a.example:443"]],
  ])("is found for %s", (_row, script, expected) => {
    expect(look(script)).toEqual(expected);
  });

  test.each([
    "bash -c 'curl https://a.example'",
    "sh -ec 'cd x && (curl https://a.example | tee y) || true'",
    "bash -c \"echo $X; curl https://a.example\"",
    "A=1 sudo -u me env -i B=2 timeout 5 nice -n 1 curl https://a.example",
    "zsh -lc \"bash -c 'curl https://a.example'\"",
    "cat x | xargs -n1 curl https://a.example",
    "x=$(curl https://a.example)",
    "diff <(curl https://a.example) y",
    "for x in 1 2; do curl https://a.example/$x & done; wait",
    "if ! curl https://a.example; then exit 1; fi",
    "bash <<'END'\ncurl https://a.example\nEND",
    "find . -name x -exec /usr/bin/curl https://a.example/{} \\;",
    "eval 'curl https://a.example'",
    "curl https://a.example/\"$X\" 'unfinished",
    "agentbox run -- curl https://a.example",
  ])("is found behind wrappers and in scripts: %s", (script) => {
    expect(look(script)).toEqual(["curl a.example:443"]);
  });

  test.each([
    "curl https://$HOST/ \"https://${X}.example/\" https://{a,b}.example $URL",
    "URL=https://a.example; curl \"$URL\"",
    "curl 'https://<host>/x' 'https://{name}.example' https:// http:///x file:///x s3://bucket/x",
    "cat hosts | xargs -I% curl https://%/",
    "xargs -I HOST curl https://HOST/x",
    "curl localhost:3000 http://127.0.0.1:8080/ http://[::1]/ http://app.localhost",
    "echo https://a.example; grep -r https://a.example src; cat <<E > f\ncurl https://a.example\nE",
    "git commit -m https://a.example; git remote add o https://a.example/b; git push origin a:b; git fetch upstream; git log git@a.example:b",
    "gh-page --base https://a.example build; hugo --baseURL https://a.example",
    "npm run build; npm test; npm --version; yarn build; yarn --version; pip list; cargo build --offline; go build ./...; go test ./...; apt list",
    "npm ci --offline; pip install --no-index x; uv sync --offline",
    "which curl; command -v wget; type git; man ssh; ssh -V; docker --version; sudo",
    "ssh build-host; scp x host:y; git clone work:repo",
    "agentbox policy explain https://a.example; agentbox preflight -- curl https://a.example",
    "# curl https://a.example",
    "echo 'curl https://a.example'",
    "make URL=https://a.example",
    "node -e 'fetch(\"https://a.example\")'",
    "GOPROXY=off go mod download",
    "",
    "   ",
  ])("is nothing where it is not plain, not the network's or this machine's own: %s", (script) => {
    expect(look(script)).toEqual([]);
    expect(lookStrictly(script)).toEqual([]);
  });

  test("is each place once, and the agent most surely", () => {
    expect(look("curl https://a.example/1; curl https://A.example/2; ssh b.example; ssh-add; ssh b.example")).toEqual(["curl a.example:443", "ssh b.example:22", "ssh-add ssh-agent!"]);
  });

  test("keeps the method of a request", () => {
    const methods = findNeeds({ script: "curl -X DELETE http://a.example; curl -d x http://b.example; curl -I http://c.example; curl -Gd x http://d.example; curl -T f http://e.example; wget --method=PUT http://f.example" }, "heuristic");
    expect(methods.map((need) => need.kind === "host" && need.method)).toEqual(["DELETE", "POST", "HEAD", undefined, "PUT", "PUT"]);
  });
});

describe("strict looks at URLs among the arguments only", () => {
  test.each<[string, string, string[]]>([
    ["takes URLs", "curl https://a.example && git clone https://b.example/c && pip install -i https://i.example x", ["curl a.example:443", "git b.example:443", "pip i.example:443"]],
    ["takes them behind wrappers and in substitutions", "sudo timeout 5 curl https://a.example; echo $(wget https://b.example)", ["curl a.example:443", "wget b.example:443"]],
    ["takes those of programs that are not known", "fetch-it https://a.example", ["fetch-it a.example:443"]],
    ["leaves out what has no scheme", "curl a.example; git clone git@b.example:c; ssh c.example; nc d.example 25", []],
    ["leaves out what tools ask by themselves", "npm ci; pip install x; go mod download; gh pr list; docker ps; ssh-add", []],
    ["leaves out scripts in the command", "bash -c 'curl https://a.example'; eval 'curl https://b.example'", []],
  ])("and %s", (_row, script, expected) => {
    expect(lookStrictly(script)).toEqual(expected);
  });
});

test("words are taken as they are: nothing of them is a shell's", () => {
  expect(findNeeds({ words: ["curl", "https://a.example/$(x)", ";", "wget", "https://b.example"] }, "heuristic").map(show)).toEqual(["curl a.example:443", "curl b.example:443"]);
  expect(findNeeds({ words: ["bash", "-c", "wget https://b.example"] }, "heuristic").map(show)).toEqual(["wget b.example:443"]);
  expect(findNeeds({ words: [] }, "heuristic")).toEqual([]);
});

describe("hostile text", () => {
  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 8 }),
    fc.constantFrom(..."curl wget git clone ssh scp rsync npm install pip go docker find -exec xargs -I{} env sudo bash -c eval watch gh --hostname -o -i -p -J -e --registry -H nc http POST https:// ssh:// git@ : / @ [ ] % {} $( ) ' \" ; | && << E \n a.example ::1 65536 0 -- = + * \0".split(" ")),
    fc.constant(" "),
  );
  const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(""));

  test("never makes it throw, and what is found has a port and is no dynamic host", () => {
    fc.assert(
      fc.property(text, fc.array(fc.oneof(text, fc.constantFrom("curl", "git", "clone", "ssh", "-o")), { maxLength: 8 }), (script, words) => {
        const hosts = [...findNeeds({ script }, "heuristic"), ...findNeeds({ words: ["curl", ...words] }, "heuristic"), ...findNeeds({ words }, "strict")].filter((need) => need.kind === "host");
        expect(hosts.filter(({ host, port }) => host === "" || host.includes("$") || !Number.isInteger(port) || port < 1 || port > 65_535)).toEqual([]);
      }),
      { numRuns: 10_000 },
    );
  });

  test("never finds more in strict than in heuristic mode", () => {
    fc.assert(
      fc.property(text, (script) => {
        expect(placesOf(look(script))).toEqual(expect.arrayContaining(placesOf(lookStrictly(script))));
      }),
      { numRuns: 5000 },
    );
  });

  test.each(["curl -", "ssh -oA ", "git clone a@b.c:d;", "x@ ", "rsync a@", "sudo ", "sh -c ", "env -S ", "find -exec ", "xargs -Ia ", "curl 'https://a.b", "npm i a@", "ssh -o'A      "])("ends however long it is: %s", (start) => {
    const lines = [{ script: start.repeat(65_536 / start.length) }, { words: start.repeat(100_000).split(" ") }, { words: ["ssh", "-o", `A${" ".repeat(100_000)}x\ny`, start.repeat(100_000)] }];
    expect(lines.map((line) => findNeeds(line, "heuristic").length <= 200)).toEqual([true, true, true]);
  });
});
