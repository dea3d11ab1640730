package escape

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A victim is a process outside the sandbox that has the same user as the agent.
type victim struct {
	PID     int
	Address uintptr // address of the secret in its memory
	FD      int     // descriptor of an unnamed file with the secret
	Shared  shared
}

// victimMain holds the secret in memory until its input ends. The first argument is a file with
// the secret.
func victimMain() int {
	signal.Ignore(unix.SIGTERM) // it removes what it shares, and then ends
	runtime.LockOSThread()
	secret, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	memory, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	copy(memory, secret)
	fd, err := unix.MemfdCreate("secret", 0)
	if err == nil {
		_, err = unix.Write(fd, secret)
	}
	if err == nil { // otherwise Yama lets only ancestors trace it, and the test would prove nothing about the sandbox
		err = ignoreMissing(unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0))
	}
	key := 0
	if err == nil {
		key, err = addKey(secret)
	}
	with, remove, err2 := share(secret)
	defer remove()
	if err == nil {
		err = err2
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(victim{PID: os.Getpid(), Address: uintptr(unsafe.Pointer(&memory[0])), FD: fd, Shared: with})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var end [1]byte
	os.Stdin.Read(end[:])
	runtime.KeepAlive(memory)
	if key != 0 {
		unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_USER_KEYRING, 0, 0)
	}
	return 0
}

// addKey adds the secret to the user's keyring. It returns 0 if this kernel has no keyrings.
func addKey(secret []byte) (int, error) {
	key, err := unix.AddKey("user", keyName(os.Getpid()), secret, unix.KEY_SPEC_USER_KEYRING)
	if err == unix.ENOSYS {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if _, err := unix.KeyctlInt(unix.KEYCTL_SET_TIMEOUT, key, int(time.Hour.Seconds()), 0, 0); err != nil { // if this process is killed
		return key, err
	}
	const everythingForItsUser = 0x3f3f0000
	return key, unix.KeyctlSetperm(key, everythingForItsUser)
}

// ignoreMissing drops errors of features that this kernel was built without.
func ignoreMissing(err error) error {
	if err == unix.EINVAL {
		return nil
	}
	return err
}
