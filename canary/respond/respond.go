// Package respond is the local T2 runtime: it answers an identity query from a compiled
// profile alone. No model, no network, no clock.
package respond

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/canon"
)

// maxRequest bounds a request, in bytes.
const maxRequest = 1 << 20

// inputs are the files that make up the answer: every one must be there.
var inputs = []string{"SOUL.md", "config.yaml", "identity.json"}

// Answer answers one request from the profile.
func Answer(profile fs.FS, request []byte) ([]byte, error) {
	query, err := wire.ParseRequest(request)
	if err != nil {
		return nil, canon.InFile("request", err)
	}
	answer := wire.Answer{Format: wire.Format, QueryID: query.QueryID}
	var view *wire.View
	for _, name := range inputs {
		data, err := fs.ReadFile(profile, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &canon.InputError{File: name, Problem: "missing from the profile", Fix: "compile the profile anew"}
		case err != nil:
			return nil, err
		case len(data) == 0:
			return nil, &canon.InputError{File: name, Problem: "empty", Fix: "compile the profile anew"}
		}
		answer.Inputs = append(answer.Inputs, wire.File{Path: name, SHA256: canon.Sum(data)})
		if name == "identity.json" {
			if view, err = wire.ParseView(data); err != nil {
				return nil, canon.InFile(name, err)
			}
		}
	}
	if view.Agent != query.Agent {
		return nil, &canon.InputError{File: "request", Key: "/query/agent",
			Problem: fmt.Sprintf("the query is for %q, the profile is of %q", query.Agent, view.Agent), Fix: "ask the agent whose profile it is"}
	}
	answer.Agent, answer.Label = view.Agent, view.Label
	if answer.QuerySHA256, err = query.SHA256(); err != nil {
		return nil, err
	}
	answer.Statements = view.Sources(query)
	return canon.Marshal(answer)
}

// Main is the whole program: the request on in, the answer on out, the profile in
// home ($HERMES_HOME). It returns the exit status.
func Main(in io.Reader, out, errs io.Writer, home string) int {
	answer, err := run(in, home)
	if err == nil {
		_, err = out.Write(answer)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(errs, "responder: error:", err)
	var input *canon.InputError
	if errors.As(err, &input) {
		fmt.Fprintln(errs, "responder: hint:", input.Hint())
		return 3
	}
	return 4
}

func run(in io.Reader, home string) ([]byte, error) {
	if home == "" {
		return nil, &canon.InputError{File: "environment", Key: "HERMES_HOME", Problem: "not set", Fix: "set it to a compiled profile"}
	}
	request, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err != nil {
		return nil, err
	}
	if len(request) > maxRequest {
		return nil, &canon.InputError{File: "request", Problem: fmt.Sprintf("longer than %d bytes", maxRequest), Fix: "shorten the query"}
	}
	return Answer(os.DirFS(home), request)
}
