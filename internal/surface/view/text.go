package view

import (
	"errors"
	"io/fs"
	"unicode/utf8"

	"lockkeeper"
)

// wholeText leaves out what is cut off of a character at the beginning and at the end of a
// piece of text, and says where it begins then.
func wholeText(from int64, text []byte) (int64, string) {
	if from > 0 {
		for n := 0; n < utf8.UTFMax && len(text) > 0 && !utf8.RuneStart(text[0]); n++ {
			text, from = text[1:], from+1
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				text = text[:len(text)-n]
			}
			break
		}
	}
	return from, string(text)
}

// ignoreMissing passes over an error that says that there is nothing.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
		return nil
	}
	return err
}
