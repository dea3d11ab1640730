package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// clientTables list the TCP sockets of this network namespace. A socket for IPv6 that is
// connected to an IPv4 address is in the second one.
var clientTables = []string{"/proc/net/tcp", "/proc/net/tcp6"}

// findSockets returns the client's ends of the wanted connections, with the processes that
// hold them.
func findSockets(wanted map[pair]bool) (map[pair]socket, error) {
	found := map[pair]socket{}
	for _, table := range clientTables {
		if len(found) == len(wanted) {
			break // the kernel takes milliseconds to print a table, however short it is
		}
		if err := readSockets(table, wanted, found); err != nil {
			return nil, err
		}
	}
	inodes := map[uint64]pair{}
	for p, s := range found {
		if s.inode != 0 {
			inodes[s.inode] = p
		}
	}
	return found, findHolders(inodes, func(inode uint64, h holder) {
		s := found[inodes[inode]]
		s.holders = append(s.holders, h)
		found[inodes[inode]] = s
	})
}

// check judges a socket by its holders.
func (s socket) check() error {
	if s.inode == 0 { // the kernel then reports user 0 for every client
		return &UnseenError{Reason: "the client has closed the connection"}
	}
	for _, h := range s.holders {
		if h.marked {
			return &ConfinedError{PID: h.pid}
		}
	}
	if len(s.holders) == 0 && (os.Geteuid() == 0 || s.uid == os.Geteuid()) {
		return &UnseenError{Reason: fmt.Sprintf("no visible process of user %d has it open", s.uid)}
	}
	return nil
}

// checkAbsent judges a client whose socket is not in the tables of this machine: it is on
// another machine, unless it has an address of this one.
func checkAbsent(client, server netip.Addr) error {
	here := client.IsLoopback() || client == server
	if !here {
		list, err := net.InterfaceAddrs()
		if err != nil {
			return &UnseenError{Reason: err.Error()}
		}
		for _, a := range list {
			if network, ok := a.(*net.IPNet); ok {
				own, _ := netip.AddrFromSlice(network.IP)
				here = here || own.Unmap() == client
			}
		}
	}
	if here {
		return &UnseenError{Reason: "the client's socket is gone"}
	}
	return nil
}

// readSockets adds the wanted connections that one table lists.
func readSockets(table string, wanted map[pair]bool, found map[pair]socket) error {
	f, err := os.Open(table)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the kernel has no IPv6
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // skips the heading
	for lines.Scan() {
		// A line has these fields: sl local remote state queues timer retransmits uid timeout
		// inode.
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			return fmt.Errorf("%s: cannot parse %q", table, lines.Text())
		}
		local, errLocal := parseAddress(fields[1])
		remote, errRemote := parseAddress(fields[2])
		uid, errUID := strconv.Atoi(fields[7])
		inode, errInode := strconv.ParseUint(fields[9], 10, 64)
		if err := errors.Join(errLocal, errRemote, errUID, errInode); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
		if p := (pair{local, remote}); wanted[p] {
			found[p] = socket{uid: uid, inode: inode}
		}
	}
	return lines.Err()
}

// parseAddress reads an address as the kernel prints it: words of 32 bits in the order of
// this machine's bytes, then the port.
func parseAddress(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	words, err := hex.DecodeString(host)
	if err != nil || len(words)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", text)
	}
	for i := 0; i < len(words); i += 4 {
		binary.NativeEndian.PutUint32(words[i:], binary.BigEndian.Uint32(words[i:]))
	}
	ip, ok := netip.AddrFromSlice(words)
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil || !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", text)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}
