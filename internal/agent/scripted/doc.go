// Package scripted is an agent without a model: it speaks the protocol of `claude -p`
// and does what a script says. Demonstrations and tests run it through the adapter that
// runs Claude Code, as a process of its own.
//
// Invariants:
//
//  1. The same script and prompt give the same output, byte for byte. It contains no times
//     and nothing random.
//  2. An invalid script is refused as a whole, with the line, before the first output or act.
//  3. Only files below the working directory are changed.
//  4. Permissions, limits and reports follow Claude Code 2.1.197. An unknown flag is refused.
//
// A script is a YAML file:
//
//	calls:                     # the first that matches the prompt is played
//	  - match: 'posts/(\w+)'   # a regular expression; empty matches everything
//	    times: 1               # how many processes may play it; 0: any number
//	    stubborn: false        # true: SIGTERM does not end it
//	    steps:                 # one act each
//	      - say: I look at $1.               # $1 is a group of match; also in the result
//	      - write: {path: 'docs/$1.md', content: "text\n"}
//	      - edit: {path: a.rb, find: old, replace: new}   # the text occurs once, or was already replaced
//	      - delete: old.md
//	      - tool: {name: WebFetch, input: {url: x}, answer: none, denied: true}
//	      - retry: {status: 529, word: overloaded, wait: 500ms}
//	      - sleep: 2s
//	      - await: go                        # until a line arrives in this named pipe beside the script
//	      - print: "no JSON\n"               # unchanged, on the standard output
//	      - log: a warning                   # on the standard error
//	      - flood: 1000000                   # this many bytes without a line end
//	      - spawn: 1m                        # a process that outlives this one
//	      - hang: true                       # until it is killed
//	      - exit: 3                          # without a result
//	      - die: KILL                        # by a signal: KILL, TERM
//	    result:                # the last line; default: success without cost
//	      text: done
//	      structured: {answer: 42}
//	      cost_usd: 0.12
//	      tokens: {input: 100, output: 20, cache_read: 0, cache_write: 0}
//	      fail: {word: rate_limit, status: 429, text: no more, resets: 1794830000}
//	      cut: 40              # bytes of the last line that are written before it dies
//
// The package owns no goroutines.
package scripted
