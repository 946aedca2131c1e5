package main

import (
	"fmt"
	"os"

	"selfsame.dev/selfsame/internal/atomicfile"
)

// noInput refuses an output that would replace an input.
func noInput(output string, inputs ...string) error {
	there, err := os.Stat(output)
	if err != nil {
		return nil // nothing to replace
	}
	for _, input := range inputs {
		if info, err := os.Stat(input); err == nil && os.SameFile(there, info) {
			return &refusal{fmt.Sprintf("the output %s is the input %s", output, input)}
		}
	}
	return nil
}

// writeResult puts a result at the path given with --output, whole or not at all, or
// on standard output where there is none.
func writeResult(std streams, path string, data []byte) error {
	if path == "" {
		_, err := std.out.Write(append(data, '\n'))
		return err
	}
	return atomicfile.Write(path, data, 0o644)
}
