//go:build !linux

package supervisor

import "net"

// checkPeer accepts all users, because only this user can access the directory of the socket and
// a request needs the token.
func checkPeer(*net.UnixConn) error { return nil }
