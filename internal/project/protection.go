package project

import (
	"os"
	"path/filepath"
	"strings"

	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/protect"
)

// Protection returns the list of files that agents never write in the codebase at root. If
// root is empty, it returns the list for agents outside of any codebase.
func Protection(root string, env func(string) (string, bool)) (*protect.List, error) {
	if root == "" {
		return protect.New(protect.Options{Env: env}), nil
	}
	c, err := config.Load(filepath.Join(root, config.FileName), env, nil)
	if err != nil {
		return nil, err
	}
	return protection(root, c, env), nil
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
