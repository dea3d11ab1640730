package term

// The colors in use, as escape sequences.
const (
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Bold   = "\x1b[1m"
	Dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

// Escape sequences that move the cursor.
const (
	ClearScreen = "\x1b[H\x1b[2J" // clears the screen and starts at the top
	ClearLine   = "\r\x1b[K"      // clears the line and starts at the left
)

// Painter returns a function that colors text for f, if f may be colored.
func (io *IO) Painter(f File) func(colour, text string) string {
	if !io.colours(f) {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string { return colour + text + plain }
}
