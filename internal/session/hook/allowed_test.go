package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Options with which programs write files or run other programs, from their manuals. Each of
// them makes a command opaque, or the plan names the file that it writes.
//
// shows: GP-5
func TestOptionsThatWriteOrRun(t *testing.T) {
	dir := t.TempDir()
	for program, options := range map[string][]string{
		"bat":      {"--pager=x", "--pager x", "--config-file x", "--generate-config-file", "cache --build", "cache --clear", "--lessopen", "-P", "--map-syntax=x:y"},
		"batcat":   {"--pager=x", "--diagnostic"},
		"less":     {"-o x", "-ox", "-O x", "--log-file=x", "--LOG-FILE=x", "-k x", "--lesskey-src=x", "--lesskey-content=x", "-t x", "-T x", "+!x", "++!x", "'+|$x'", "-Nox"},
		"more":     {"+!x", "-p", "-e x"},
		"file":     {"-C", "--compile", "-Cm x", "-m x", "-z", "-Z", "-S", "-f x", "-bC", "--magic-file=x"},
		"jobs":     {"-x rm f", "-lx rm f"},
		"wait":     {"-p x", "-np x"},
		"man":      {"-P x", "--pager=x", "-H", "-Hx", "--html=x", "-C x", "-l x", "-p x", "-T x", "-X", "-Z", "-E x", "--preprocessor=x"},
		"lsof":     {"-D b", "-Db/x", "-m x", "-A x", "-o"},
		"trash":    {"-e", "--empty", "-x"},
		"clear":    {"-T x"},
		"tree":     {"-o x", "-ox", "-ao x", "-R", "-R -H . -L 1", "--fromfile x", "--infofile=x"},
		"rg":       {"--pre x", "--pre=x", "--hostname-bin=x", "-z", "--search-zip", "--ignore-file=x", "--debug"},
		"ag":       {"--pager x", "--pager=x", "-z", "--search-zip", "-p x"},
		"read":     {"-e x", "-i x y", "'a[$(rm f)]'", "-a 'a[0]'", "PATH", "-r IFS"},
		"unset":    {"'a[$(rm f)]'", "PATH", "-f ls", "-n x"},
		"printf":   {"-v x y", "-vx y", "-v 'a[$(rm f)]' y", "'%n' PATH", "'%-5ln' x", "$y"},
		"test":     {"-v 'a[$(rm f)]'", "-R x", "\"$y\" = x", "! -v x"},
		"[":        {"-v x ]", "$y ]"},
		"set":      {"-a", "-k", "-f", "-o allexport", "-o noglob", "+B", "-ea", "x", "-o", "-m", "-b"},
		"history":  {"-w f", "-a f", "-n f", "-r f", "-c", "-s x", "-p '!!'", "-d 1"},
		"exit":     {"'a[$(rm f)]'", "$y"},
		"return":   {"x"},
		"break":    {"x"},
		"continue": {"x"},
		"shift":    {"x"},
		"ulimit":   {"-c x", "x"},
		"cd":       {"", "-", "-P .", "nowhere", "$y", ". x", "+1"},
		"pushd":    {"", "+1", "-0", "-n ."},
		"sh":       {"x", "-s", "-i", "-c x y", "-o x", "+x"},
		"bash":     {"--rcfile x", "--init-file x", "-i -c ls", "-c $y", "x.sh", "-O x"},
		"eval":     {"$y"},
		"curl":     {"-c x", "--cookie-jar x", "-D x", "--dump-header x", "-K x", "--config x", "--trace x", "--trace-ascii x", "--stderr x", "--libcurl x", "--etag-save x", "--hsts x", "--alt-svc x", "-w '%output{x}'", "-J", "-sOJ http://x", "--create-dirs", "-T x", "-C - x"},
		"wget":     {"http://x", "-o x -O y", "-a x -O -", "-r http://x", "-N http://x", "-i x", "-e x=y -O -", "--execute x -O -", "--config=x -O -", "--use-askpass=x -O -", "--save-cookies x -O -", "-P x", "-b -O x", "--rejected-log=x -O -", "--hsts-file=x -O -", "--warc-file=x -O -", "-x"},
		"cp":       {"-r x y", "-a x y", "-R x y", "-b x y", "--backup x y", "-S .o x y", "--parents x y", "-l x y", "-s x y", "--symbolic-link x y", "--remove-destination x y", "$y x"},
		"install":  {"-s x y", "--strip x y", "--strip-program=x y z", "-b x y", "-S .o x y", "-D x y", "$y x"},
		"sort":     {"--compress-program=x", "--compress-program x", "-T x", "--temporary-directory=x", "--files0-from=x", "--random-source=x", "--debug", "--outpu=x", "-o x x", "$y"},
		"uniq":     {"x y", "- y", "$y"},
		"sed":      {"-i d x", "-n -i p x", "--in-place d x", "-f x", "--file=x", "w x", "'1w x'", "s/a/b/w x", "s/a/b/e", "e", "'1e ls'", "'s/[/]/;s/w x'", "'s/[]/]/;s/w x'", "'s/[[:alpha:]/]/;s/w x'", "'/[/]/w x'", "W x", "'r x'", "-s -i d", "$y", "--debug p", "--follow-symlinks p", "'s/a/b/;w x'", "'$!{w x\n}'"},
		"awk":      {"-f x", "-i inplace 1 x", "-i x", "-l x", "-E x", "-o 1", "-ox 1", "-d 1", "-dx 1", "-p 1", "-D 1", "-e 1", "--file=x", "--include=x", "--load=x", "--exec=x", "--source 1", "--dump-variables=x 1", "--profile=x 1", "--pretty-print=x 1", "-W exec=x", "'{ print > \"x\" }'", "'{ print | \"x\" }'", "'BEGIN { system(\"x\") }'", "'@include \"x\"'", "'@load \"x\"'", "'BEGIN { f = \"sys\" \"tem\"; @f(\"x\") }'", "$y"},
		"gawk":     {"-f x", "-i inplace 1 x"},
		"mawk":     {"-f x", "-W exec x"},
		"tar":      {"xf x", "-xf x", "cf x y", "rf x y", "uf x y", "--delete -f x y", "-tf x -I y", "tf x --use-compress-program=y", "tf x --to-command=y", "tf x --checkpoint=1 --checkpoint-action=exec=y", "tf x -F y", "tf x --info-script=y", "tf x --index-file=y", "tf host:x", "tf x --rsh-command=y", "tf x --rmt-command=y", "tgf y x", "--list -f x", "Af x y", "tf $y", "tIf x y"},
		"hostname": {"x", "-F x", "-b x"},
		"tput":     {"init", "reset", "-T x cols", "-S", "clear"},
		"find":     {". -delete", ". -fprint x", ". -fprint0 x", ". -fprintf x y", ". -fls x", ". -exec x {} +", ". -execdir ls {} +", ". -ok x {} ';'", ". -okdir ls ';'", ". -name $y", ". -unknown", ". -files0-from x", ". -name x -delete", ". -name -name -delete"},
		"go":       {"env -w X=y", "env -u X", "list -toolexec x", "list -mod=mod ./...", "list -export ./...", "list -compiled ./...", "list -overlay x", "list -modfile=x", "vet -vettool=x", "vet -toolexec x", "vet -fix", "vet -exec x", "build", "test", "run .", "generate", "fmt", "mod tidy", "get x", "install", "work sync", "clean", "doc -http", "version -x", "tool x", "-C x list", "fix", "telemetry on", "bug"},
		"npm":      {"ls --script-shell=x", "ls --node-options=x", "ls --prefix x", "ls --logs-dir=x", "ls --userconfig=x", "view --browser x", "run x", "test", "install", "ci", "exec x", "x", "start", "--prefix x ls", "view $y"},
		"pip":      {"list --log x", "install x", "freeze --log=x", "--log x list", "list --python x", "download x", "show --config-settings x"},
		"pip3":     {"list --log x"},
		"docker":   {"run x", "exec x", "cp x y", "build .", "-H ssh://x ps", "--config x ps", "compose up", "save -o x y", "export -o x y", "ps --unknown", "rm x"},
		"podman":   {"run x", "ps --unknown"},
		ownProgram: {"run", "job work", "job submit -- rm f", "undo 1", "rescue restore x", "rescue land x", "gate write x", "lock exec --write x rm f", "lock exec --write x -- ./y", "demo", "status --unknown", "init claude", "serve"},
		"env":      {"-C x ls", "--chdir=x ls", "-u HOME ls", "-i ls", "-S 'x y'", "PATH=. ls", "LD_PRELOAD=x ls", "A=1 ls", "--block-signal ls", "-a x ls", "LC_ALL=../x ls"},
		"sudo":     {"-e x", "-s ls", "-i ls", "-D x ls", "-R x ls", "-A ls", "-E ls", "PATH=. ls"},
		"doas":     {"-s ls", "-C x ls"},
		"xargs":    {"x", "--process-slot-var=PATH ls", "-a x ls", "--arg-file=x ls", "-o ls", "rm", "-I{} sh -c {}"},
		"nice":     {"--adjustment=x ls", "x"},
		"timeout":  {"--unknown 1 ls", "1 x"},
		"stdbuf":   {"--output=L ls", "x"},
		"time":     {"x"},
		"command":  {"x", "time --output=x ls", "time -o x ls"},
		"exec":     {"-a x ls", "-c ls", "x"},
		"setsid":   {"-c ls", "x"},
		"ionice":   {"-p 1 ls", "x"},
		"busybox":  {"ls", "sh"},
		"toybox":   {"ls"},
		"nohup":    {"x"},
		"export":   {"x=1", "PATH=.", "\"$y\"", "-n x", "-f x"},
		"declare":  {"-i x=y", "-n x=y", "-x x=1", "\"$y=1\"", "PATH=.", "-u x", "'a[$(rm f)]=1'"},
		"nothing":  {"", "--version", "--help"},
		"ssh":      {"x", "-o ProxyCommand=x y"}, "rsync": {"x y", "-e x y z"}, "scp": {"x y"}, "ln": {"x y"}, "mv": {"x y"}, "perl": {"-e 1"}, "python3": {"-c 1"}, "node": {"-e 1"}, "make": {""},
		"source": {"x"}, ".": {"x"}, "trap": {"x EXIT"}, "alias": {"ls=x"}, "hash": {"-p x ls"}, "enable": {"-f x ls"}, "shopt": {"-s extglob"}, "mapfile": {"x"}, "readarray": {"x"}, "compgen": {"-C x"},
		"complete": {"-C x y"}, "bind": {"-x x"}, "getopts": {"x y"}, "let": {"x"}, "coproc": {"x"}, "popd": {""}, "zgrep": {"x y"}, "yarn": {"list"}, "cargo": {"metadata", "tree"}, "fd": {"-x x"}, "watch": {"x"},
		"split": {"x"}, "csplit": {"x 1"}, "script": {"x"}, "ed": {"x"}, "vi": {"x"}, "patch": {"x"}, "zip": {"x y"}, "unzip": {"x"}, "gzip": {"x"}, "xxd": {"-r x y"}, "iconv": {"-o x y"}, "openssl": {"x"},
	} {
		if harmless()[program] == anyOptions {
			t.Errorf("%s is called harmless with all of its options", program)
		}
		for _, o := range options {
			command := program + " " + o
			if p := effectsOf(command, dir, os.LookupEnv); !p.Opaque {
				t.Errorf("%s is not opaque", command)
			}
		}
	}
}

// Subcommands of git are opaque with every option that writes a file or runs a program.
//
// shows: GP-5
func TestGitOptionsThatWriteOrRun(t *testing.T) {
	dir := t.TempDir()
	acts := strings.Fields("status log show whatchanged rev-list shortlog reflog stash diff diff-tree diff-files diff-index range-diff blame grep ls-files ls-tree ls-remote fetch rev-parse " +
		"describe cat-file for-each-ref show-ref branch tag remote config add init worktree merge-base check-ignore check-attr rm name-rev var count-objects cherry version reset")
	options := strings.Fields("--output=x --output --outpu=x --ext-diff --textconv --filters --upload-pack=x --exec=x --receive-pack=x --open-files-in-pager=x -O -Ox --show-signature --edit " +
		"--edit-description --template=x --separate-git-dir=x --interactive --paginate --server-option=x --unset --replace-all --hard --merge --keep --update-head-ok --recurse-submodules=yes --no-such-option")
	for _, act := range acts {
		if _, known := harmless()["git/"+act]; !known {
			t.Errorf("git %s is not known", act)
		}
		for _, o := range options {
			if p := effectsOf("git "+act+" "+o, dir, os.LookupEnv); !p.Opaque {
				t.Errorf("git %s %s is not opaque", act, o)
			}
		}
	}
	for _, command := range []string{"-c core.pager=x log", "-c alias.x=!y x", "--exec-path=x status", "--config-env=a=b status", "-p log", "--paginate log", "--git-dir=x status", "--git-dir x status",
		"--work-tree=x status", "--namespace=x log", "-C $y status", "$y", "x", "add -p", "add -i", "add -e", "add --edit", "add --patch", "tag -s x", "tag -a x", "tag -e x", "branch --edit-description",
		"config x.y z", "config core.pager x", "config --edit", "config -e", "config --unset x", "config --add x y", "config set x y", "config --get-urlmatch x y", "config --file=x --list", "remote add x y",
		"remote set-url x y", "remote update", "remote rename x y", "reflog expire", "reflog delete x", "stash", "stash pop", "stash drop", "stash show -p --output=x", "worktree add x", "worktree remove x",
		"rm x", "rm -f x", "reset --hard", "reset -q --keep", "fetch ext::sh", "ls-remote ext::x", "fetch -u x", "commit", "checkout x", "switch x", "restore x", "merge x", "rebase -x y", "bisect run x",
		"submodule foreach x", "difftool", "mergetool", "am", "apply x", "archive -o x HEAD", "bundle create x HEAD", "format-patch -1", "gc", "clean -f", "push", "pull", "clone x", "filter-branch", "help -w x",
		"send-email x", "instaweb", "gui", "web--browse x", "credential fill", "hook run x", "maintenance run", "notes edit", "replace --edit x", "sparse-checkout set x", "update-index --add x", "fast-export",
		"daemon", "svn", "lfs pull", "cat-file --textconv x", "cat-file --filters x", "grep -nO x", "grep --open-files-in-pager x", "diff $y", "log -- x --output=y | sh", "init --template x", "fsck --lost-found"} {
		if p := effectsOf("git "+command, dir, os.LookupEnv); !p.Opaque {
			t.Errorf("git %s is not opaque", command)
		}
	}
}

// A repository whose own configuration names a program makes git opaque.
//
// shows: GP-5
func TestRepositoryThatRunsPrograms(t *testing.T) {
	for config, plain := range map[string]bool{
		"[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\tfetch = y\n[branch \"main\"]\n\tremote = origin\n": true,
		"[core]\n\tfsmonitor = true\n": true, "# nothing\n": true,
		"[core]\n\tfsmonitor = ./x\n": false, "[core] pager = x\n": false, "[CORE]\n\tSSHCommand=x\n": false, "[diff]\n\texternal = x\n": false, "[diff \"x\"]\n\ttextconv = y\n": false,
		"[filter \"x\"]\n\tclean = y\n": false, "[alias]\n\tx = !y\n": false, "[include]\n\tpath = x\n": false, "[includeIf \"gitdir:x\"]\n\tpath = x\n": false, "[core]\n\thooksPath = x\n": false,
		"[remote \"x\"]\n\tuploadpack = y\n": false, "[credential]\n\thelper = x\n": false, "[gpg]\n\tprogram = x\n": false, "[user]\n\tname = x \\\n": false, "[core\n": false, "[interactive]\n\tdiffFilter=x\n": false,
	} {
		for _, name := range []string{".git/config", "config", ".git/config.worktree"} {
			dir := t.TempDir()
			files := map[string]string{name: config}
			if name == "config" { // without a work tree
				files["HEAD"], files["objects/x"] = "ref: refs/heads/main\n", ""
			}
			writeFiles(t, dir, files)
			if p := effectsOf("git status", dir, os.LookupEnv); p.Opaque == plain {
				t.Errorf("%s with %q: opaque is %v", name, config, p.Opaque)
			}
		}
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{"main/.git/config": config, "main/.git/worktrees/x/commondir": "../..\n", "x/.git": "gitdir: " + dir + "/main/.git/worktrees/x\n"})
		if p := effectsOf("cd x && git status", dir, os.LookupEnv); p.Opaque == plain {
			t.Errorf("linked work tree with %q: opaque is %v", config, p.Opaque)
		}
	}
}

// A program in a directory where an agent can write may not be the one that its name suggests.
//
// shows: GP-5
func TestProgramInTheTree(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"bin/ls": "#!/bin/sh\n", ".git/config": "", "sub/x": ""})
	for path, opaque := range map[string]bool{dir + "/bin:/usr/bin": true, "/usr/bin": false, "bin:/usr/bin": true, ":/usr/bin": true} {
		env := func(name string) (string, bool) { return path, name == "PATH" }
		for _, command := range []string{"ls", "cd sub && ls"} {
			if p := effectsOf(command, dir, env); p.Opaque != opaque {
				t.Errorf("%s with PATH=%s: opaque is %v", command, path, p.Opaque)
			}
		}
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
