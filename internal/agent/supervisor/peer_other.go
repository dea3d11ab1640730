//go:build !linux

package supervisor

import "net"

// checkPeer accepts all users: the directory of the socket is this user's alone,
// and a request needs the token.
func checkPeer(*net.UnixConn) error { return nil }
