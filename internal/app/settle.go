package app

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/config"
)

var storeLine = regexp.MustCompile(`(?m)^#?store:.*$`)

// planConfig is what the configuration file is to be after init, nil when it is
// that already: the sample when there is no file, with the given store in it. A
// file that names another store is refused.
func planConfig(path, store string) ([]byte, error) {
	text, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing:
		text = []byte(config.Sample())
	case err != nil:
		return nil, err
	}
	inFile, err := config.Load(path, nil, nil)
	switch {
	case err != nil:
		return nil, err
	case store == "" || inFile.Store == store:
		if missing {
			return text, nil
		}
		return nil, nil
	case inFile.Store != config.Default().Store:
		return nil, &lockkeeper.InputError{Field: "store", Value: store, Reason: path + " names another one, " + config.Redact(inFile.Store),
			Next: "change it there, or leave --store out"}
	}
	return withStore(string(text), store), nil
}

// withStore puts a store into the text of a configuration file, in the place of
// the sample's commented line where that is still there.
func withStore(text, store string) []byte {
	line := "store: '" + strings.ReplaceAll(store, "'", "''") + "'"
	if at := storeLine.FindStringIndex(text); at != nil {
		return []byte(text[:at[0]] + line + text[at[1]:])
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(text + line + "\n")
}
