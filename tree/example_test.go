package tree_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"lockkeeper"
	"lockkeeper/tree"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, "app", "models"), 0o700); err != nil {
		log.Fatal(err)
	}
	root, err := tree.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()

	for _, spelling := range []string{"./app//models/user.rb", "app/models", "app/models/user.rb/", "app/../secret"} {
		lock, err := root.Resolve("", spelling, lockkeeper.Read)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(lock.Kind, lock.Path)
	}
	// Output:
	// file app/models/user.rb
	// dir app/models
	// dir app/models/user.rb
	// path "app/../secret": path with ..; next: use a path relative to the root, from the root directory, or an absolute path
}
