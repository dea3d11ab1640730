// Package manager reads the configuration of programs that manage the hooks of git, such as
// lefthook and pre-commit, to find the check of Lockkeeper in it. It reads the files of the codebase
// and follows no references to other files.
package manager
