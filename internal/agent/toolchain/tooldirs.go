package toolchain

// A toolDir is a directory that a tool uses, in the user's home or given by an environment
// variable. If it has parts, only these are added, because the tool's credentials are next to
// them.
type toolDir struct {
	variable string
	usual    string // relative to the home directory
	parts    []string
}

// programs are the directories of interpreters, compilers and installed programs.
var programs = []toolDir{
	// Python
	{"PYENV_ROOT", ".pyenv", nil},
	{"VIRTUAL_ENV", "", nil},
	{"CONDA_PREFIX", "", nil},
	{"PIPX_HOME", ".local/share/pipx", nil},
	{"", ".local/pipx", nil},
	{"", ".local/lib", nil},
	{"", ".local/share/uv", []string{"python", "tools"}},
	{"POETRY_HOME", ".local/share/pypoetry", nil},
	// JavaScript
	{"NVM_DIR", ".nvm", nil},
	{"FNM_DIR", ".local/share/fnm", nil},
	{"VOLTA_HOME", ".volta", nil},
	{"NODENV_ROOT", ".nodenv", nil},
	{"PNPM_HOME", ".local/share/pnpm", nil},
	{"BUN_INSTALL", ".bun", []string{"bin", "install"}},
	{"DENO_INSTALL", ".deno", []string{"bin"}},
	{"PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright", nil},
	{"PUPPETEER_CACHE_DIR", ".cache/puppeteer", nil},
	{"CYPRESS_CACHE_FOLDER", ".cache/Cypress", nil},
	// Rust, Go
	{"RUSTUP_HOME", ".rustup", nil},
	{"CARGO_HOME", ".cargo", []string{"bin", "env"}},
	{"GOROOT", "", nil},
	{"GOPATH", "go", []string{"bin"}},
	{"GOENV_ROOT", ".goenv", nil},
	{"", "sdk", nil},
	// Ruby
	{"RBENV_ROOT", ".rbenv", nil},
	{"rvm_path", ".rvm", nil},
	{"GEM_HOME", "", nil},
	{"", ".gem/ruby", nil},
	{"", ".local/share/gem/ruby", nil},
	// Java virtual machine
	{"JAVA_HOME", "", nil},
	{"SDKMAN_DIR", ".sdkman", []string{"candidates", "bin", "src", "etc", "var"}},
	{"JENV_ROOT", ".jenv", nil},
	{"ANDROID_HOME", "Android/Sdk", nil},
	// Others
	{"ASDF_DATA_DIR", ".asdf", nil},
	{"MISE_DATA_DIR", ".local/share/mise", nil},
	{"DOTNET_ROOT", ".dotnet", nil},
	{"", ".ghcup", nil},
	{"OPAMROOT", ".opam", nil},
	{"ELAN_HOME", ".elan", nil},
	{"", ".juliaup", nil},
	{"JULIA_DEPOT_PATH", ".julia", []string{"artifacts", "compiled", "juliaup", "packages", "registries"}},
	{"HOMEBREW_PREFIX", ".linuxbrew", nil},
}

// packages lists the directories into which tools download packages.
var packages = []toolDir{
	{"GOMODCACHE", "", nil},
	{"GOPATH", "go", []string{"pkg/mod"}},
	{"CARGO_HOME", ".cargo", []string{"registry", "git"}},
	{"PIP_CACHE_DIR", ".cache/pip", nil},
	{"UV_CACHE_DIR", ".cache/uv", nil},
	{"POETRY_CACHE_DIR", ".cache/pypoetry", nil},
	{"PRE_COMMIT_HOME", ".cache/pre-commit", nil},
	{"npm_config_cache", ".npm", []string{"_cacache", "_npx"}},
	{"YARN_CACHE_FOLDER", ".cache/yarn", nil},
	{"", ".yarn/berry/cache", nil},
	{"", ".cache/node-gyp", nil},
	{"COREPACK_HOME", ".cache/node/corepack", nil},
	{"DENO_DIR", ".cache/deno", nil},
	{"", ".m2/repository", nil},
	{"GRADLE_USER_HOME", ".gradle", []string{"caches", "wrapper"}},
	{"", ".ivy2/cache", nil},
	{"COURSIER_CACHE", ".cache/coursier", nil},
	{"NUGET_PACKAGES", ".nuget/packages", nil},
	{"COMPOSER_CACHE_DIR", ".cache/composer", nil},
	{"", ".bundle/cache", nil},
}

// builds lists the directories in which tools keep build results.
var builds = []toolDir{
	{"GOCACHE", ".cache/go-build", nil},
	{"GOLANGCI_LINT_CACHE", ".cache/golangci-lint", nil},
	{"CCACHE_DIR", ".cache/ccache", nil},
}

// certificates are variables that name files of trusted certificates, which are public.
var certificates = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE",
	"NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT", "CARGO_HTTP_CAINFO", "DENO_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"}

// inTops are files by which the top directory of an installation is recognized.
var inTops = []string{"pyvenv.cfg", "conda-meta", "go.env", "lib/modules", "jre"}

// beside are the directories next to bin that its programs use.
var beside = []string{"lib", "lib32", "lib64", "libexec", "include", "share"}
