package enrol

import "strings"

// section is the part with the instruction in a Markdown file, between two marks.
type section struct{}

const (
	sectionBegin = "<!-- lockkeeper: begin -->"
	sectionEnd   = "<!-- lockkeeper: end -->"
)

// instruction is the text that an agent reads at the start of each session. It is short, because
// each refusal explains its own next step.
const instruction = sectionBegin + `
## Others work here at the same time

Lockkeeper keeps agents and people from writing over each other. Files that you write are
yours until the end of the turn. A write that begins with ` + "`REFUSED`" + ` says who has the file:
do not retry it and do not write it by other means; work on something else, or leave the
change with ` + "`lockkeeper defer PATH < patch`" + `. You are told when the file is free.
` + "`lockkeeper status`" + ` shows who is working here, ` + "`lockkeeper why PATH`" + ` who holds a file.
` + sectionEnd + "\n"

func (p section) into(text string, o order) (string, error) {
	newline := newlineOf(text)
	ours := strings.ReplaceAll(instruction, "\n", newline)
	if begin, end, there := sectionIn(text); there {
		return text[:begin] + ours + text[end:], nil
	}
	if text == "" {
		return ours, nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += newline
	}
	return text + newline + ours, nil
}

func (section) outOf(text string, _ order) (string, error) {
	begin, end, there := sectionIn(text)
	if !there {
		return text, nil
	}
	before := text[:begin]
	for _, blank := range []string{"\r\n\r\n", "\n\n"} {
		if strings.HasSuffix(before, blank) {
			before = before[:len(before)-len(blank)/2]
			break
		}
	}
	return before + text[end:], nil
}

// sectionIn finds our section, including the end of its last line.
func sectionIn(text string) (begin, end int, there bool) {
	begin = strings.Index(text, sectionBegin)
	if begin < 0 {
		return 0, 0, false
	}
	length := strings.Index(text[begin:], sectionEnd)
	if length < 0 {
		return 0, 0, false
	}
	end = begin + length + len(sectionEnd)
	for _, newline := range []string{"\r\n", "\n"} {
		if strings.HasPrefix(text[end:], newline) {
			end += len(newline)
			break
		}
	}
	return begin, end, true
}
