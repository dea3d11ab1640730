package main

import (
	"context"
	"fmt"
	"os"

	"lockkeeper/internal/cli"
)

func main() {
	io, err := cli.System()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lockkeeper:", err)
		os.Exit(1)
	}
	os.Exit(cli.Main(context.Background(), io, os.Args[1:]))
}
