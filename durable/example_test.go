package durable_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"lockkeeper/durable"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "queue.json")

	fmt.Println(durable.ReadJSONOr(path, []string{"nothing yet"}))
	if err := durable.WriteJSON(context.Background(), path, []string{"a.md", "b.md"}, 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Println(durable.ReadJSONOr(path, []string{"nothing yet"}))
	// Output:
	// [nothing yet]
	// [a.md b.md]
}
