package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

type unit struct {
	name string
	size time.Duration
}

var units = []unit{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

var errDuration = errors.New("not a duration, write it like 30m, 45s, 1h30m or 7d, or as whole seconds")

// durationPattern is what ParseDuration accepts, for the schema.
const durationPattern = `^([0-9]+|([0-9]+(d|h|m|s|ms))+)$`

// ParseDuration parses whole numbers with units, or whole seconds. The file, variables and flags
// all use this format.
func ParseDuration(text string) (time.Duration, error) {
	if strings.HasPrefix(text, "-") {
		return 0, errors.New("negative")
	}
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	var total time.Duration
	rest := text
	for rest != "" {
		after := strings.TrimLeft(rest, "0123456789")
		n, err := strconv.ParseUint(rest[:len(rest)-len(after)], 10, 32)
		rest = strings.TrimLeft(after, "dhms")
		name := after[:len(after)-len(rest)]
		i := slices.IndexFunc(units, func(u unit) bool { return u.name == name })
		if err != nil || i < 0 {
			return 0, errDuration
		}
		size := units[i].size
		part := time.Duration(n) * size
		if part/size != time.Duration(n) || total+part < total {
			return 0, errors.New("too long")
		}
		total += part
	}
	if text == "" {
		return 0, errDuration
	}
	return total, nil
}

// formatDuration formats a duration for ParseDuration, with the largest units.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range units {
		if n := d / u.size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			d %= u.size
		}
	}
	return b.String()
}
