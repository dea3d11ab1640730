package config

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

var units = []struct {
	name string
	size time.Duration
}{
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
		digits := leading(rest, func(c byte) bool { return '0' <= c && c <= '9' })
		unit := leading(rest[len(digits):], func(c byte) bool { return 'a' <= c && c <= 'z' })
		rest = rest[len(digits)+len(unit):]
		n, err := strconv.ParseUint(digits, 10, 32)
		size := unitSize(unit)
		if err != nil || size == 0 {
			return 0, errDuration
		}
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

func leading(s string, in func(byte) bool) string {
	i := 0
	for i < len(s) && in(s[i]) {
		i++
	}
	return s[:i]
}

func unitSize(name string) time.Duration {
	for _, u := range units {
		if u.name == name {
			return u.size
		}
	}
	return 0
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
