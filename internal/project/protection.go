package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/protect"
)

// A Configuration is the configuration of a root, as its file was at one moment.
type Configuration struct {
	*config.Config
	root string
	file fs.FileInfo // the state of the file before it was read; nil: there is none
}

// Configure reads the configuration of a root.
func Configure(root string, s Settings) (*Configuration, error) {
	name := filepath.Join(root, config.FileName)
	file, err := os.Stat(name)
	if err != nil {
		file = nil
	}
	c, err := config.Load(name, s.Env, s.flags())
	if err != nil {
		return nil, err
	}
	return &Configuration{Config: c, root: root, file: file}, nil
}

// Protection returns the list of files that agents never write in the codebase.
func (c *Configuration) Protection(env func(string) (string, bool)) *protect.List {
	return protection(c.root, c.Config, env)
}

func protection(root string, c *config.Config, env func(string) (string, bool)) *protect.List {
	var own []string
	if c.LocksFile != "" {
		own = append(own, c.LocksFile)
	}
	if !config.IsPostgres(c.Store) {
		store := strings.TrimPrefix(c.Store, root+"/")
		if filepath.IsLocal(store) {
			own = append(own, store, store+"-wal", store+"-shm", store+"-journal")
		}
	}
	return protect.New(protect.Options{Root: root, Env: env, Own: own, Documents: c.DocumentDirs()})
}

// Configured lists the files of a codebase that decide whether agents are checked there.
func Configured(root string) (list []string) {
	for _, name := range append([]string{config.FileName}, protect.HostFiles()...) {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			list = append(list, name)
		}
	}
	return list
}
