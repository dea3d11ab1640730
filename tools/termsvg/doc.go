// Command termsvg turns the recording of a terminal into a picture: it reads what a program wrote to a
// pseudoterminal, and writes the final screen as SVG.
//
//	script -qec COMMAND recording >/dev/null; termsvg <recording >picture.svg
//
// It understands colors, bold and faint text, carriage returns, moves of the cursor and erasing, which
// is what Lockkeeper writes. It fails on any other control sequence.
package main
