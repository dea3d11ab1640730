package shellword_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"lockkeeper/internal/encoding/shellword"
)

var awkward = []string{"", "a b", "it's", `"`, "$HOME", "`id`", "~", "*", "a\nb", "\t", "-n", "--x=1", "A=1", "größe.rb", "\xff", "\\", `\'`, "!", "{a,b}", "[", "#", "=ls", "a;b", "\u202e"}

// A shell passes every word on unchanged, also as the first of a command.
func TestShellReadsTheSameWords(t *testing.T) {
	for _, word := range awkward {
		out, err := exec.Command("sh", "-c", "printf '%s|' "+shellword.Join([]string{word, "end"})).Output()
		if err != nil || string(out) != word+"|end|" {
			t.Errorf("%q: %q, %v", word, out, err)
		}
	}
}

func TestBashReadsPrintableWords(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	for _, word := range awkward {
		quoted := shellword.Printable(word)
		if strings.ContainsAny(quoted, "\n\t") || !utf8.ValidString(quoted) {
			t.Errorf("%q is not printable", quoted)
		}
		cmd := exec.Command(bash, "-c", "printf '%s|' "+quoted)
		cmd.Env = append(cmd.Environ(), "LC_ALL=C.UTF-8")
		if out, err := cmd.Output(); err != nil || string(out) != word+"|" {
			t.Errorf("%q: %q, %v", word, out, err)
		}
	}
}

func TestPlainWordsStayPlain(t *testing.T) {
	for _, word := range []string{"app/user.rb", "--flag=x", "größe.rb", "a@b", "1:2,3"} {
		if got := shellword.Quote(word); got != word {
			t.Errorf("%q became %q", word, got)
		}
	}
	if got := shellword.Quote("A=1"); got == "A=1" {
		t.Error("an assignment is not quoted")
	}
}
