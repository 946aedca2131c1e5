package canon

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// InputError says that some input is malformed or refused: which file, which key in
// it (a JSON pointer, a dotted key or a path), what is wrong, and what to do about it.
// Commands end with exit status 3 on it.
type InputError struct {
	File    string
	Key     string
	Problem string
	Fix     string
}

// Error gives "file: key: problem"; the fix is apart, for a hint line.
func (e *InputError) Error() string {
	var parts []string
	for _, part := range []string{e.File, shown(e.Key), e.Problem} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// shown keeps a key, which whoever wrote the input chose, to one line of bearable length.
func shown(key string) string {
	const limit = 400
	var b strings.Builder
	for _, r := range key {
		if b.Len() >= limit {
			b.WriteString("…")
			break
		}
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// Hint returns what the reader can do about it, or "".
func (e *InputError) Hint() string { return e.Fix }

// InFile adds the name of the file to an [*InputError] that has none yet; other errors
// are wrapped with it.
func InFile(file string, err error) error {
	if err == nil {
		return nil
	}
	var input *InputError
	if errors.As(err, &input) {
		if input.File == "" {
			named := *input
			named.File = file
			return &named
		}
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// inputError turns the errors of the JSON library into ours.
func inputError(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		problem := fmt.Sprintf("%v at byte %d", syntactic.Err, syntactic.ByteOffset)
		fix := "correct the JSON"
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			problem, fix = "the name appears twice", "keep one of the two"
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			problem, fix = "the JSON document ends too early", "complete the document"
		}
		return &InputError{Key: string(syntactic.JSONPointer), Problem: problem, Fix: fix}
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		if errors.Is(err, json.ErrUnknownName) {
			return &InputError{Key: string(semantic.JSONPointer), Problem: "the name is unknown", Fix: "remove it, or check its spelling and case"}
		}
		problem := fmt.Sprintf("a JSON %s does not fit", kindName(semantic.JSONKind))
		if semantic.Err != nil {
			problem += ": " + semantic.Err.Error()
		} else if semantic.GoType != nil {
			problem += " a value of type " + semantic.GoType.Kind().String()
		}
		return &InputError{Key: string(semantic.JSONPointer), Problem: problem, Fix: "correct the value"}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &InputError{Problem: "the JSON document is empty or ends too early", Fix: "complete the document"}
	}
	return &InputError{Problem: err.Error()}
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{', '}':
		return "object"
	case '[', ']':
		return "array"
	}
	return "value"
}
