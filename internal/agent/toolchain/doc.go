// Package toolchain finds the directories outside of the system's own that
// programs need to run: interpreters and compilers that a user installed in the
// home directory, and the caches of package managers.
//
// It returns directories that hold programs and packages, never a directory that
// also holds a tool's credentials. A tool that is not in its tables does not work
// in a sandbox until a person adds its directory to agent.read.
//
// It finds the known places of tools (tooldirs.go), every directory in PATH with its
// neighbors lib, libexec, include and share, and the targets of links and #! lines
// in these directories. A cache in the home directory may be missing.
//
// The package reads the disk, changes nothing and starts no goroutines.
package toolchain
