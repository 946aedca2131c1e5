// Command responder is the local T2 runtime of the canary: identity-runtime.v1 on
// stdin and stdout, the compiled profile in $HERMES_HOME.
package main

import (
	"os"

	"selfsame.dev/selfsame/canary/respond"
)

func main() {
	os.Exit(respond.Main(os.Stdin, os.Stdout, os.Stderr, os.Getenv("HERMES_HOME")))
}
