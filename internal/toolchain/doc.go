// Package toolchain finds the directories outside of the system's own that
// programs need to run: interpreters and compilers that a user installed in the
// home directory, and the caches of package managers.
//
// It names directories that hold programs and packages, never a directory that
// also holds a tool's credentials. A tool that is not in its tables does not work
// in a sandbox until a person names its directory; its secrets are never shown.
//
// What it finds: the known places of tools (places.go), every directory in PATH
// with the lib, libexec, include and share beside it, and what links and #! lines
// in these directories lead to.
package toolchain
