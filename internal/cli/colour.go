package cli

// The few colours in use, as escape sequences.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

// What moves the cursor of a terminal.
const (
	home  = "\x1b[H\x1b[2J" // clears it, and begins at its top
	again = "\r\x1b[K"      // clears the line, and begins at its left
)

// painter colours text for f, or leaves it as it is.
func (io *IO) painter(f file) func(colour, text string) string {
	if !io.colours(f) {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string { return colour + text + plain }
}
