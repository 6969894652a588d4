/** A tool that asks hosts of its own, state of 2026-11-22. */
export type RegistryTool = {
  programs: string;
  /** The words with which it asks, two of them as `one/two`; none where any does. */
  verbs: string;
  /** `host` for 443, or `host:port`. */
  hosts: string;
  /** Options whose value takes the place of those hosts. */
  replacing?: string;
  /** Options whose value is asked beside them. */
  adding?: string;
  /** Variables that do as `replacing`. */
  variables?: string;
  /** With any of these it asks nobody. */
  offline?: string;
  /** Further options that take a value. */
  valued?: string;
};

const NPM = { hosts: "registry.npmjs.org", replacing: "--registry", variables: "npm_config_registry NPM_CONFIG_REGISTRY", offline: "--offline", valued: "-C -w --cache --dir --filter --loglevel --prefix --tag --userconfig --workspace" };
const YARN = { ...NPM, hosts: "registry.yarnpkg.com", variables: "YARN_REGISTRY YARN_NPM_REGISTRY_SERVER" };
const PYPI = { hosts: "pypi.org files.pythonhosted.org", adding: "--extra-index-url -e --editable -f --find-links -r --requirement -c --constraint" };
const PIP = { ...PYPI, replacing: "-i --index-url", variables: "PIP_INDEX_URL", offline: "--no-index", valued: "-d -t --abi --cache-dir --cert --dest --log --only-binary --no-binary --platform --prefix --proxy --python --python-version --root --src --target --timeout --trusted-host --wheel-dir" };
const UV = { ...PYPI, replacing: "-i --index-url --default-index", adding: "--extra-index-url --index -e --editable -f --find-links -r --requirement --with-requirements -c --constraint", variables: "UV_INDEX_URL UV_DEFAULT_INDEX", offline: "--offline --no-index", valued: "-p -t --cache-dir --directory --extra --from --group --project --python --target --with" };
const CARGO = { replacing: "--index --git --path --registry", offline: "--offline", valued: "-F -Z --bin --branch --config --features --manifest-path --profile --rev --root --tag --target --target-dir --version" };
const GEM = { hosts: "rubygems.org index.rubygems.org", replacing: "-s --source --clear-sources", offline: "-l --local", valued: "-v --version -i --install-dir" };
const GH = { variables: "GH_HOST", replacing: "--hostname", valued: "-B -F -H -L -R -X -b -f -q -t --base --body --branch --field --head --header --input --jq --json --label --limit --method --raw-field --repo --template --title" };

/** Package managers and their like, with the hosts that they ask where nobody configured others. */
export const REGISTRY_TOOLS: readonly RegistryTool[] = [
  { programs: "npm", verbs: "install i in add ci clean-install update up upgrade outdated view info show publish unpublish audit search ping login adduser whoami dist-tag deprecate access owner create", ...NPM },
  { programs: "pnpm", verbs: "install i add update up upgrade outdated view info publish audit search dlx fetch create", ...NPM },
  { programs: "yarn", verbs: "install add upgrade up outdated info publish audit dlx create npm", ...YARN },
  { programs: "bun", verbs: "install i add update outdated publish x create info", ...NPM },
  { programs: "pip pip3", verbs: "install download wheel index", ...PIP },
  { programs: "pipx", verbs: "install upgrade run inject", ...PIP },
  { programs: "uv", verbs: "add sync lock pip/install pip/download pip/sync pip/compile tool/install tool/run tool/upgrade", ...UV },
  { programs: "uvx", verbs: "", ...UV },
  { programs: "bunx", verbs: "", ...NPM },
  { programs: "poetry", verbs: "install add update lock search", ...PYPI },
  { programs: "cargo", verbs: "install update fetch add info", hosts: "index.crates.io static.crates.io", ...CARGO },
  { programs: "cargo", verbs: "search publish yank owner login", hosts: "crates.io", ...CARGO },
  { programs: "gem", verbs: "install update fetch search outdated", ...GEM },
  { programs: "bundle bundler", verbs: "install update add outdated", ...GEM, offline: "--local", replacing: "--source" },
  { programs: "composer", verbs: "install i update u upgrade require create-project outdated search global", hosts: "repo.packagist.org", offline: "--offline", valued: "-d --working-dir" },
  { programs: "apt apt-get", verbs: "update install upgrade full-upgrade dist-upgrade download source build-dep", hosts: "deb.debian.org:80", offline: "--no-download -s --simulate --dry-run", valued: "-t -o -c -a --target-release --option --config-file" },
  { programs: "gh", verbs: "api auth cache codespace gist issue label org pr project release repo ruleset run search secret status variable workflow", hosts: "api.github.com", ...GH },
  { programs: "gh", verbs: "auth/login repo/clone repo/fork repo/sync pr/checkout gist/clone", hosts: "github.com", ...GH },
];
