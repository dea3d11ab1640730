//go:build !linux

package supervisor

import "net"

// checkPeer lets everybody in: the directory of the socket is this user's alone,
// and a request needs the token.
func checkPeer(*net.UnixConn) error { return nil }
