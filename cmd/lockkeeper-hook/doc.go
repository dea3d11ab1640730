// Command lockkeeper-hook is `lockkeeper hook`, as a program of its own: hosts start it
// before every write, and a program that can do nothing else is there in half the time.
// `lockkeeper init claude` names it in the host's settings where it lies beside lockkeeper.
package main
