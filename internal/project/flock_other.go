//go:build unix && !linux

package project

import "os"

func flockPIDs(*os.File) []int { return nil }

func commandOf(int) string { return "" }
