//go:build machines

package machines

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// card is the name of a machine's network card.
const card = "eth0"

// A link says what becomes of packets in one direction between two machines. The zero value
// delivers them at once.
type link struct {
	dropped bool          // all packets vanish, without an error for the sender
	loss    float64       // part of the packets that vanish
	delay   time.Duration // what a packet takes
}

// A network forwards packets between the cards of machines.
type network struct {
	ctx    context.Context
	end    context.CancelFunc
	active sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	cards  map[byte]*os.File
	links  map[[2]byte]link
	queues map[[2]byte]chan packet
	trips  map[byte]int     // by machine: how often it sent something after an answer
	spoke  map[[4]byte]byte // by machine, server and port of the machine: who sent last
}

type packet struct {
	due  time.Time
	data []byte
}

func newNetwork(ctx context.Context, seed uint64) *network {
	n := &network{random: rand.New(rand.NewPCG(seed, 0)), cards: map[byte]*os.File{}, links: map[[2]byte]link{}, queues: map[[2]byte]chan packet{}, trips: map[byte]int{}, spoke: map[[4]byte]byte{}}
	n.ctx, n.end = context.WithCancel(ctx)
	return n
}

// close ends the network. Its machines have ended.
func (n *network) close() {
	n.end()
	n.active.Wait()
}

// plug gives a machine a card and forwards what it sends.
func (n *network) plug(m *machine) error {
	made := make(chan error, 1)
	fd := -1
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		// The card belongs to the network namespace of the thread that opens the device.
		err := m.enter()
		if err == nil {
			fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		}
		if err != nil {
			made <- err
			return
		}
		request, err := unix.NewIfreq(card)
		if err == nil {
			request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
		}
		made <- err
	}()
	if err := <-made; err != nil {
		if fd >= 0 {
			unix.Close(fd)
		}
		return fmt.Errorf("the card of %s: %w", m.name, err)
	}
	file, from := os.NewFile(uintptr(fd), m.name), byte(m.number)
	n.mu.Lock()
	n.cards[from] = file
	n.mu.Unlock()
	n.active.Go(func() {
		buffer := make([]byte, 1<<16)
		for {
			size, err := file.Read(buffer)
			if err != nil {
				return // unplugged
			}
			n.send(from, buffer[:size])
		}
	})
	return nil
}

// unplug takes the card away.
func (n *network) unplug(m *machine) {
	n.mu.Lock()
	file := n.cards[byte(m.number)]
	delete(n.cards, byte(m.number))
	n.mu.Unlock()
	if file != nil {
		file.Close()
	}
}

// send puts a packet of IPv4 into the queue of its direction, or drops it.
func (n *network) send(from byte, data []byte) {
	if len(data) < 20 || data[0]>>4 != 4 {
		return
	}
	direction := [2]byte{from, data[19]} // the last byte of the destination
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count(data)
	l := n.links[direction]
	if l.dropped || l.loss > 0 && n.random.Float64() < l.loss {
		return
	}
	queue := n.queues[direction]
	if queue == nil {
		queue = make(chan packet, 4096)
		n.queues[direction] = queue
		n.active.Go(func() { n.deliver(direction, queue) })
	}
	select {
	case queue <- packet{time.Now().Add(l.delay), append([]byte(nil), data...)}:
	default: // as a full router does
	}
}

// deliver hands the packets of one direction over, in order, when they are due.
func (n *network) deliver(direction [2]byte, queue chan packet) {
	for {
		var p packet
		select {
		case p = <-queue:
		case <-n.ctx.Done():
			return
		}
		if wait := time.Until(p.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-n.ctx.Done():
				return
			}
		}
		n.mu.Lock()
		file, dropped := n.cards[direction[1]], n.links[direction].dropped
		n.mu.Unlock()
		if file != nil && !dropped {
			file.Write(p.data) // fails if the card is down: then the packet is lost
		}
	}
}

// set changes one direction between two machines.
func (n *network) set(from, to *machine, l link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[[2]byte{byte(from.number), byte(to.number)}] = l
}

// both changes both directions between a machine and others.
func (n *network) both(m *machine, l link, others ...*machine) {
	for _, o := range others {
		n.set(m, o, l)
		n.set(o, m, l)
	}
}

// count counts the round trips of a person's machine to a server: in a TCP connection it sends
// data after it has received data, or as the first. Empty packets only confirm or open. No client waits
// for an answer to PostgreSQL's Terminate, which ends a connection.
func (n *network) count(data []byte) {
	header := int(data[0]&15) * 4
	if data[9] != unix.IPPROTO_TCP || len(data) < header+20 {
		return
	}
	tcp := data[header:]
	offset := int(tcp[12]>>4) * 4
	if len(tcp) <= offset || string(tcp[offset:]) == "X\x00\x00\x00\x04" {
		return
	}
	from, to, port := data[15], data[19], tcp[0:2]
	if from >= hubNumber {
		from, to, port = to, from, tcp[2:4]
	}
	connection := [4]byte{from, to, port[0], port[1]}
	if n.spoke[connection] != from && data[15] == from {
		n.trips[from]++
	}
	n.spoke[connection] = data[15]
}

// tripsOf returns how many round trips a machine has made.
func (n *network) tripsOf(m *machine) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trips[byte(m.number)]
}
