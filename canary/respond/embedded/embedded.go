// Package embedded makes every program that imports it a responder, too, so that a canary
// can start that program anew and needs no other.
package embedded

import (
	"os"

	"selfsame.dev/selfsame/canary/respond"
)

// Arg is the one argument that makes the program the responder.
const Arg = "selfsame-canary-responder"

// Ahead of main, and so of what the rest of the program needs time to initialize: the responder has no use for it.
func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		os.Exit(respond.Main(os.Stdin, os.Stdout, os.Stderr, os.Getenv("HERMES_HOME")))
	}
}
