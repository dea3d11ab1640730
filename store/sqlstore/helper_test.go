package sqlstore

import "fmt"

func helper(mode string, args []string) int { fmt.Println(mode, args); return 1 }
