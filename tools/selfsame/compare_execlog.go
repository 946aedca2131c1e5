package main

import (
	"os"

	"selfsame.dev/selfsame/execlog"
	"selfsame.dev/selfsame/manifest"
)

// execlog compares two execution logs of Bazel.
func (c *compareCommand) execlog(std streams) error {
	if err := c.oneInput(); err != nil {
		return err
	}
	var logs [2]execlog.Source
	for i, name := range []*string{c.ModesA, c.ModesB} {
		if name != nil {
			var err error
			if logs[i].Modes, err = modesIn(*name); err != nil {
				return err
			}
		}
	}
	for i, name := range []string{c.A, c.B} {
		logs[i].Name, logs[i].Reader = name, std.in
		if name == "-" {
			continue
		}
		file, err := openFile(name, "two execution logs")
		if err != nil {
			return err
		}
		defer file.Close()
		logs[i].Reader = file
	}
	result, err := execlog.Compare(logs[0], logs[1], execlog.Secrets{Value: manifest.SecretValue, File: manifest.CredentialFile}, execlog.Limits{})
	if err != nil {
		return err
	}
	if err := c.write(std, result); err != nil || result.Equal {
		return err
	}
	return &failure{reason: result.Summary()}
}

// modesIn reads a listing of modes.
func modesIn(name string) (execlog.Modes, error) {
	if name == "-" {
		return nil, &refusal{"a listing of modes is not read from standard input: name a file"}
	}
	file, err := openFile(name, "a listing of modes")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return execlog.ReadModes(name, file)
}

func openFile(name, what string) (*os.File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = &refusal{name + " is a folder: name " + what}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
