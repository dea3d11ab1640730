package main

import (
	"os"

	"lockkeeper/internal/agent/scripted"
)

func main() { os.Exit(scripted.Main()) }
