package execlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// Modes are the permission and special bits (up to octal 7777) of the files of a workspace, by path relative to it.
type Modes map[string]uint16

const listModes = `find . -type f -printf '%m %P\n'`

const maxModes = 64 << 20 // bytes of a listing

// ReadModes reads what GNU find prints for listModes at the top of a workspace: a line a file, of its mode in octal, a
// space and its path. Errors are [*canon.InputError] unless the source cannot be read.
func ReadModes(name string, in io.Reader) (Modes, error) {
	modes, err := readModes(in, maxModes)
	return modes, canon.InFile(name, err)
}

func readModes(in io.Reader, most int64) (Modes, error) {
	const again = "make the listing at the top of the workspace, with: " + listModes
	lines := bufio.NewReader(&limited{r: in, left: most})
	modes := Modes{}
	for at := 1; ; at++ {
		refuse := func(problem string) error {
			return &canon.InputError{Key: fmt.Sprintf("line %d", at), Problem: problem, Fix: again}
		}
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) > 0:
			return nil, refuse("the listing ends in the middle of a line")
		case err == io.EOF && len(modes) == 0:
			return nil, &canon.InputError{Problem: "is empty", Fix: again}
		case err == io.EOF:
			return modes, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, refuse("is longer than a path can be")
		case errors.Is(err, errTooLong):
			return nil, &canon.InputError{Key: fmt.Sprintf("line %d", at), Problem: fmt.Sprintf("the listing is longer than %d MiB", most>>20), Fix: "leave out what no action reads, such as: -not -path './.git/*'"}
		case err != nil:
			return nil, err
		}
		octal, file, _ := strings.Cut(string(bytes.TrimSuffix(line, []byte("\n"))), " ")
		mode, err := strconv.ParseUint(octal, 8, 12)
		switch _, twice := modes[file]; {
		case err != nil || len(octal) > 4:
			return nil, refuse("begins with no mode of up to four octal digits and a space")
		case file == "" || strings.HasSuffix(file, "\r") || strings.Contains(file, "\x00"):
			return nil, refuse("names no file")
		case path.IsAbs(file) || file == ".." || strings.HasPrefix(file, "../") || file == "." || path.Clean(file) != file:
			return nil, refuse("names no file by its plain path in the workspace (absolute, or with an element that is empty, . or ..): " + file)
		case twice:
			return nil, refuse("names a file that an earlier line names: " + file)
		}
		modes[file] = uint16(mode)
	}
}
