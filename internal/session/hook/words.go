package hook

import (
	"slices"
	"strings"
)

// words are the words after a program, separated by their meaning.
type words struct {
	options  []option
	operands []string
	paths    []string // the operands after --
	known    bool     // no word is unknown, and each option is in the grammar
}

// option is an option with its value. The value is "" if there is none.
type option struct{ name, value string }

// noValues is a grammar in which no option takes the next word as its value.
const noValues allowed = ""

// read separates options from operands. An option that is not in the grammar takes no value from
// the next word. Letters after one dash are separate options.
func (o allowed) read(args []string) words {
	w := words{known: true}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			w.paths = args[i+1:]
			return w
		case a == "":
			w.known = false
			w.operands = append(w.operands, a)
			continue
		case len(a) == 1 || a[0] != '-':
			w.operands = append(w.operands, a)
			continue
		}
		list, ok, next := o.split(a)
		if next {
			if i++; i < len(args) {
				list[len(list)-1].value = args[i]
			}
			ok = ok && i < len(args) && args[i] != ""
		}
		w.options = append(w.options, list...)
		w.known = w.known && ok
	}
	return w
}

// split returns the options in one word. ok reports whether the grammar has all of them, and
// next whether the next word is the value of the last option.
func (o allowed) split(word string) (list []option, ok, next bool) {
	name, value, joined := strings.Cut(word, "=")
	if kind, is := o.kind(name); is {
		return []option{{name, value}}, !joined || kind != "", kind == "=" && !joined
	}
	if _, number := o.kind("-#"); number && strings.Trim(word[1:], "0123456789") == "" {
		return []option{{"-#", word[1:]}}, true, false
	}
	if strings.HasPrefix(word, "--") {
		return []option{{name, value}}, false, false
	}
	ok = true
	for j := 1; j < len(word); j++ {
		letter := "-" + word[j:j+1]
		kind, is := o.kind(letter)
		if ok = ok && is; kind == "" {
			list = append(list, option{letter, ""})
			continue
		}
		list = append(list, option{letter, word[j+1:]})
		return list, ok, kind == "=" && j+1 == len(word)
	}
	return list, ok, false
}

func (w words) has(names ...string) bool {
	return slices.ContainsFunc(w.options, func(o option) bool { return slices.Contains(names, o.name) })
}

func (w words) values(names ...string) (list []string) {
	for _, o := range w.options {
		if slices.Contains(names, o.name) && o.value != "" {
			list = append(list, o.value)
		}
	}
	return list
}

// all lists the operands on both sides of --.
func (w words) all() []string { return slices.Concat(w.operands, w.paths) }
