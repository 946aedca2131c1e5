package main

import (
	"selfsame.dev/selfsame/internal/atomicfile"
)

// writeResult puts a result at the path given with --output, whole or not at all, or
// on standard output where there is none.
func writeResult(std streams, path string, data []byte) error {
	if path == "" {
		_, err := std.out.Write(append(data, '\n'))
		return err
	}
	return atomicfile.Write(path, data, 0o644)
}
