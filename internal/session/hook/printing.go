package hook

import "strings"

// isPrinting reports whether sed only prints: it changes no file in place, and its script has
// no command that writes a file or runs a program. It returns false for a script that it
// cannot parse.
func isPrinting(args []string) bool {
	var scripts []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "":
			return false
		case a == "-e" || a == "--expression":
			if i++; i == len(args) {
				return false
			}
			scripts = append(scripts, args[i])
		case a == "-n" || a == "-E" || a == "-r" || a == "-nE" || a == "-nr" || a == "-En" || a == "-u" || a == "-z" || a == "-s":
		case len(a) > 1 && a[0] == '-':
			return false
		case len(scripts) == 0:
			scripts = append(scripts, a)
		}
	}
	for _, s := range scripts {
		for s = strings.TrimLeft(s, " ;\n"); s != ""; s = strings.TrimLeft(s, " ;\n") {
			rest, ok := afterCommand(s)
			if !ok {
				return false
			}
			s = rest
		}
	}
	return true
}

// afterCommand returns the script after its first command. ok is false unless that command
// only prints, ends sed, or deletes or replaces text in the output.
func afterCommand(s string) (rest string, ok bool) {
	s, ok = afterAddress(s)
	s = strings.TrimLeft(s, " !")
	switch {
	case s == "" || !ok:
		return "", false
	case strings.ContainsRune("pdqQ=}", rune(s[0])):
		s = s[1:]
	case s[0] == '{':
		return s[1:], true
	case s[0] == 's' && len(s) > 1:
		end := s[1]
		if s, ok = afterDelimited(s[2:], end, true); ok {
			s, ok = afterDelimited(s, end, false)
		}
		if !ok {
			return "", false
		}
		s = strings.TrimLeft(s, "gpiI0123456789")
	default:
		return "", false
	}
	return s, s == "" || strings.ContainsRune(" ;\n}", rune(s[0]))
}

// afterAddress returns the script after the line numbers or patterns of its first command.
func afterAddress(s string) (rest string, ok bool) {
	for {
		switch {
		case s != "" && s[0] == '/':
			if s, ok = afterDelimited(s[1:], '/', true); !ok {
				return "", false
			}
			s = strings.TrimLeft(s, "I")
		case s != "" && strings.ContainsRune("0123456789$,+~ ", rune(s[0])):
			s = s[1:]
		default:
			return s, true
		}
	}
}

// afterDelimited returns the text after the next delimiter that is not escaped. ok is false if
// there is none, or if it may be in the brackets of a pattern, where sed continues.
func afterDelimited(s string, end byte, pattern bool) (rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case end:
			return s[i+1:], !pattern || !strings.Contains(patterns().bracket.ReplaceAllString(s[:i], ""), "[")
		}
	}
	return "", false
}
