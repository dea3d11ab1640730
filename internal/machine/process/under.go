package process

import "strings"

// Under lists the grants that a process with this environment runs under, outermost first.
func Under(env []string) (grants []string) {
	for _, entry := range env {
		if list, ok := strings.CutPrefix(entry, grantsVariable+"="); ok && list != "" {
			grants = strings.Split(list, ":")
		}
	}
	return grants
}
