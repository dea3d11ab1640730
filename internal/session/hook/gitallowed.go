package hook

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isHarmlessGit reports whether a subcommand of git changes no file of the work tree and runs
// no other program, with these options.
func isHarmlessGit(act string, args []string) bool {
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	switch act {
	case "stash", "worktree", "reflog", "remote", "config": // of some, only what these words name
		known := map[string][]string{"stash": {"list", "show"}, "worktree": {"list"}, "reflog": {"", "show"}, "remote": {"", "-v", "show", "get-url"},
			"config": {"--get", "--get-all", "--list", "-l", "get", "list"}}
		if !slices.Contains(known[act], first) {
			return false
		}
	}
	options, known := gitOptions(act)
	operands, ok := options.operands(args)
	switch act {
	case "rm":
		return ok && slices.Contains(args, "--cached")
	case "ls-remote", "fetch": // a transport such as ext:: runs a program
		return ok && !strings.Contains(strings.Join(operands, " "), "::")
	}
	return known && ok
}

// gitOptions returns the options with which a subcommand is harmless.
func gitOptions(act string) (allowed, bool) {
	const refs = "--sort= --format= --contains? --no-contains? --merged? --no-merged? --points-at= --count= --color? --column? --no-column --ignore-case "
	const diff = "-# -p -u -s -U= -z -a -b -w -R -M? -C? -B? -l= -S= -G= --patch --no-patch --unified= --raw --stat? --numstat --shortstat --dirstat? --summary --compact-summary --name-only " +
		"--name-status --color? --no-color --color-words? --word-diff? --word-diff-regex= --color-moved? --no-renames --find-renames? --find-copies? --find-copies-harder --full-index --binary " +
		"--abbrev? --diff-filter= --pickaxe-all --pickaxe-regex --relative? --text --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --inter-hunk-context= " +
		"--function-context -W --exit-code --quiet -q --no-ext-diff --no-textconv --ignore-submodules? --submodule? --minimal --patience --histogram --diff-algorithm= --check --cached " +
		"--staged --merge-base --no-index --no-prefix --patch-with-stat --cc -c -m -r -t --root --diff-merges= "
	const log = diff + "-n= -i -E -F -g -L= --max-count= --skip= --since= --after= --until= --before= --author= --committer= --grep= --all-match --invert-grep --regexp-ignore-case --extended-regexp " +
		"--fixed-strings --perl-regexp --merges --no-merges --first-parent --all --branches? --tags? --remotes? --glob= --exclude= --reflog --walk-reflogs --cherry --cherry-pick --cherry-mark " +
		"--left-right --left-only --right-only --follow --oneline --pretty? --format= --abbrev-commit --no-abbrev-commit --date= --decorate? --no-decorate --graph --no-graph --reverse " +
		"--date-order --author-date-order --topo-order --full-history --simplify-merges --ancestry-path? --source --parents --children --boundary --no-notes --notes? --no-walk? --count " +
		"--objects --not --stdin --numbered --email -e --group= "
	switch act {
	case "status":
		return "-s -b -z -v -u? -M? --short --branch --porcelain? --long --untracked-files? --ignored? --show-stash --ahead-behind --no-ahead-behind --renames --no-renames --find-renames? " +
			"--column? --no-column --ignore-submodules? --verbose", true
	case "log", "show", "whatchanged", "rev-list", "shortlog", "reflog", "stash":
		return log, true
	case "diff", "diff-tree", "diff-files", "diff-index", "range-diff":
		return diff, true
	case "blame":
		return "-L= -w -C? -M? -s -e -l -p -t -f -n --porcelain --line-porcelain --incremental --date= --since= --show-email --show-name --show-number --root --ignore-rev= --abbrev=", true
	case "grep":
		return "-# -n -i -l -L -w -v -E -F -P -G -c -h -H -q -I -a -o -p -W -z -r -e= -A= -B= -C= -m= --cached --untracked --no-index --and --or --not --all-match --count --name-only " +
			"--files-with-matches --files-without-match --ignore-case --word-regexp --invert-match --line-number --heading --break --color? --no-color --max-depth= --max-count= --column " +
			"--perl-regexp --extended-regexp --fixed-strings --only-matching --show-function --function-context --text --quiet --recurse-submodules", true
	case "ls-files":
		return "-c -d -m -o -i -s -u -k -t -v -z -f -x= -X= --cached --deleted --modified --others --ignored --stage --unmerged --killed --directory --no-empty-directory --exclude-standard " +
			"--exclude= --full-name --error-unmatch --recurse-submodules --abbrev? --eol --deduplicate --format=", true
	case "ls-tree":
		return "-d -r -t -l -z --long --name-only --name-status --full-name --full-tree --abbrev? --format= --object-only", true
	case "ls-remote":
		return "-h -t -q --heads --branches --tags --refs --quiet --exit-code --get-url --symref --sort=", true
	case "fetch":
		return "-a -p -P -t -n -v -q -f -j= -4 -6 --all --prune --prune-tags --tags --no-tags --verbose --quiet --force --depth= --deepen= --unshallow --dry-run --jobs= --progress --atomic --append", true
	case "rev-parse":
		return "-q --verify --quiet --short? --abbrev-ref? --symbolic --symbolic-full-name --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree " +
			"--is-inside-git-dir --is-bare-repository --is-shallow-repository --show-superproject-working-tree --git-path= --path-format= --all --branches? --tags? --remotes? --show-object-format?", true
	case "describe":
		return "--all --tags --contains --abbrev= --always --long --match= --exclude= --dirty? --broken? --exact-match --first-parent --candidates=", true
	case "cat-file":
		return "-p -t -s -e --batch? --batch-check? --batch-all-objects --buffer --unordered --allow-unknown-type", true
	case "for-each-ref", "show-ref":
		return refs + "-s -d -q --heads --branches --tags --head --verify --quiet --hash? --abbrev? --dereference --exists", true
	case "branch":
		return refs + "-a -r -v -l -d -D -m -M -c -C -f -q -t -u= --all --remotes --list --show-current --verbose --delete --move --copy --force --quiet --track? --no-track --set-upstream-to= --unset-upstream --abbrev=", true
	case "tag":
		return refs + "-l -n? -d -f -m= --list --delete --force --message=", true
	case "remote":
		return "-v -n --verbose --push --all", true
	case "config":
		return "-l -z --list --get= --get-all= --local --global --system --show-origin --show-scope --name-only --null --type= --bool --int --default= --all", true
	case "add":
		return "-A -u -v -n -f -N --all --update --verbose --dry-run --force --intent-to-add --refresh --ignore-errors --no-all --chmod=", true
	case "init":
		return "-q -b= --quiet --initial-branch=", true
	case "worktree":
		return "-v -z --porcelain --verbose", true
	case "merge-base":
		return "-a --all --octopus --independent --is-ancestor --fork-point", true
	case "check-ignore":
		return "-q -v -n -z --quiet --verbose --non-matching --stdin --no-index", true
	case "check-attr":
		return "-a -z --all --cached --stdin", true
	case "rm":
		return "-r -f -n -q --cached --force --dry-run --quiet --ignore-unmatch", true
	case "name-rev", "var", "count-objects", "cherry", "version", "reset":
		return "-v", true
	}
	return "", false
}

// isPlainRepository reports whether the configuration that is in the repository of a directory
// names no program: git status runs core.fsmonitor, and git diff runs diff.external. Settings
// of the user and the machine are not an agent's to write.
func isPlainRepository(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, ".git")
		if isThere(filepath.Join(dir, "HEAD")) && isThere(filepath.Join(dir, "objects")) { // without a work tree
			at = dir
		}
		if text := contentOf(at); text != "" { // of a linked work tree
			linked, _ := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
			at = absolute(dir, linked)
			if common := strings.TrimSpace(contentOf(filepath.Join(at, "commondir"))); common != "" {
				at = absolute(at, common)
			}
		}
		if isThere(at) {
			return isPlainConfig(filepath.Join(at, "config")) && isPlainConfig(filepath.Join(at, "config.worktree"))
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// isPlainConfig reports whether a file sets only what is known to name no program. One that is
// not there sets nothing.
func isPlainConfig(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	section, lines := "", bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			head, after, closed := strings.Cut(line[1:], "]")
			if !closed {
				return false
			}
			section, _, _ = strings.Cut(strings.ToLower(head), " ")
			line = strings.TrimSpace(after)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.TrimSpace(strings.ToLower(key))
		if strings.HasSuffix(line, `\`) || !isPlainKey(section, key, strings.TrimSpace(value)) {
			return false
		}
	}
	return lines.Err() == nil
}

func isPlainKey(section, key, value string) bool {
	switch section {
	case "user", "color", "extensions", "rerere", "push", "pull", "advice":
		return true
	case "init":
		return key == "defaultbranch"
	case "lfs":
		return key == "repositoryformatversion" || key == "url"
	case "core":
		return slices.Contains(strings.Fields("repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath untrackedcache longpaths"), key) ||
			key == "fsmonitor" && (value == "true" || value == "false")
	case "remote":
		return slices.Contains([]string{"url", "pushurl", "fetch", "push", "tagopt", "prune", "promisor", "partialclonefilter", "gh-resolved"}, key)
	case "branch":
		return slices.Contains([]string{"remote", "merge", "rebase", "description", "pushremote", "vscode-merge-base", "gh-merge-base"}, key)
	case "submodule":
		return key == "url" || key == "active" || key == "branch"
	case "fetch":
		return key == "prune" || key == "prunetags"
	case "commit", "tag":
		return key == "gpgsign"
	case "merge":
		return key == "conflictstyle" || key == "ff"
	case "gc":
		return key == "auto"
	}
	return false
}
