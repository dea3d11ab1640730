package patch

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"
)

// A Part is one rendering of a part of a page.
type Part struct {
	HTML string
	Hash string // identifies the content
	root *node
}

// A Tree has what Since compares, without the content of the part.
type Tree struct{ root *node }

// A node is an element with an id, or the whole part.
type node struct {
	id, tag  string
	from, to int    // its place in the HTML
	own      uint64 // digest of its HTML without the nodes below it
	all      uint64 // digest of its HTML
	below    []*node
}

// seed is that of all digests of this process.
var seed = maphash.MakeSeed()

// Parse reads a rendering. An id that several elements have does not count.
func Parse(html string) *Part {
	sum := sha256.Sum256([]byte(html))
	p := &Part{HTML: html, Hash: hex.EncodeToString(sum[:12])}
	b := builder{html: html, twice: repeated(html)}
	p.root = b.build()
	return p
}

// Tree returns what is needed of this part to compare a later one with it.
func (p *Part) Tree() *Tree { return &Tree{p.root} }

// repeated returns the ids that occur more than once.
func repeated(html string) map[string]bool {
	seen, twice := map[string]bool{}, map[string]bool{}
	s := scanner{html: html}
	for p, ok := s.next(); ok; p, ok = s.next() {
		if p.kind != opening && p.kind != empty {
			continue
		}
		if id := idOf(html[p.from:p.to]); id != "" {
			twice[id] = twice[id] || seen[id]
			seen[id] = true
		}
	}
	return twice
}

// A builder makes the tree of a rendering. It keeps the open elements on a stack.
type builder struct {
	html  string
	twice map[string]bool
	open  []element
}

// An element is open. Its node is nil if it has no id.
type element struct {
	tag  string
	node *node
	own  *maphash.Hash
}

func (b *builder) build() *node {
	root := &node{to: len(b.html)}
	b.push("", root)
	s := scanner{html: b.html}
	for p, ok := s.next(); ok; p, ok = s.next() {
		switch p.kind {
		case opening, empty:
			b.start(p)
		case closing:
			b.end(p)
		default:
			b.write(b.html[p.from:p.to])
		}
	}
	for len(b.open) > 0 {
		b.pop(len(b.html))
	}
	return root
}

func (b *builder) push(tag string, n *node) {
	e := element{tag: tag, node: n}
	if n != nil {
		e.own = &maphash.Hash{}
		e.own.SetSeed(seed)
	}
	b.open = append(b.open, e)
}

// current returns the innermost open node.
func (b *builder) current() element {
	for i := len(b.open) - 1; ; i-- {
		if b.open[i].node != nil {
			return b.open[i]
		}
	}
}

func (b *builder) write(text string) { b.current().own.WriteString(text) }

func (b *builder) start(p piece) {
	tag := b.html[p.from:p.to]
	id := idOf(tag)
	if id == "" || b.twice[id] {
		b.write(tag)
		if p.kind == opening {
			b.push(p.name, nil)
		}
		return
	}
	n := &node{id: id, tag: p.name, from: p.from}
	above := b.current()
	above.own.WriteByte(0) // the place of the node
	above.own.WriteString(id)
	above.own.WriteByte(0)
	above.node.below = append(above.node.below, n)
	b.push(p.name, n)
	b.write(tag)
	if p.kind == empty {
		b.pop(p.to)
	}
}

func (b *builder) end(p piece) {
	last := len(b.open) - 1
	if last == 0 || b.open[last].tag != p.name { // the template is not well-formed, and the browser will repair it
		b.write(b.html[p.from:p.to])
		return
	}
	b.write(b.html[p.from:p.to])
	b.pop(p.to)
}

// pop closes the innermost element.
func (b *builder) pop(to int) {
	e := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	if e.node == nil {
		return
	}
	e.node.to, e.node.own = to, e.own.Sum64()
	for _, n := range e.node.below {
		var digest [8]byte
		for i := range digest {
			digest[i] = byte(n.all >> (8 * i))
		}
		e.own.Write(digest[:])
	}
	e.node.all = e.own.Sum64()
}

// A Change is the new HTML of an element. In it, elements that did not change are empty, and have
// the attribute data-same.
type Change struct {
	ID   string `json:"id"` // empty: the content of the whole part
	HTML string `json:"html"`
}

// Since lists what changed since an earlier rendering. None: they are equal.
func (p *Part) Since(before *Tree) []Change {
	d := differ{html: p.HTML}
	d.compare(before.root, p.root)
	return d.changes
}

type differ struct {
	html    string
	changes []Change
}

func (d *differ) compare(was, is *node) {
	if was.all == is.all {
		return
	}
	if was.own == is.own { // the same nodes are below, in the same order
		for i, n := range is.below {
			d.compare(was.below[i], n)
		}
		return
	}
	known := map[string]*node{}
	was.collect(known)
	var b strings.Builder
	d.write(&b, is, known)
	d.changes = append(d.changes, Change{ID: is.id, HTML: b.String()})
}

// collect adds all nodes below a node by id.
func (n *node) collect(all map[string]*node) {
	for _, below := range n.below {
		all[below.id] = below
		below.collect(all)
	}
}

// write writes the HTML of a node. It only names the known nodes below it that did not change.
func (d *differ) write(b *strings.Builder, n *node, known map[string]*node) {
	at := n.from
	for _, below := range n.below {
		b.WriteString(d.html[at:below.from])
		if was := known[below.id]; was != nil && was.all == below.all && was.tag == below.tag {
			b.WriteString("<" + below.tag + ` id="` + below.id + `" data-same>`)
			if !isVoid(below.tag) {
				b.WriteString("</" + below.tag + ">")
			}
		} else {
			d.write(b, below, known)
		}
		at = below.to
	}
	b.WriteString(d.html[at:n.to])
}
