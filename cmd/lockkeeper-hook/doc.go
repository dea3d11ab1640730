// Command lockkeeper-hook is `lockkeeper hook` as a small program of its own, which starts in
// half the time. Hosts run it before every write. If it is installed with lockkeeper,
// `lockkeeper init claude` names it in the host's settings.
package main
