package main

import (
	"os"
	"strings"

	"selfsame.dev/selfsame/execlog"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
)

// execlog compares two execution logs of Bazel.
func (c *compareCommand) execlog(std streams) error {
	if err := c.oneInput(); err != nil {
		return err
	}
	var logs [2]execlog.Source
	for i, name := range []string{c.A, c.B} {
		logs[i] = execlog.Source{Name: name, Reader: std.in}
		if name == "-" {
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		if info, err := file.Stat(); err != nil {
			return err
		} else if info.IsDir() {
			return &refusal{name + " is a folder: name two execution logs"}
		}
		logs[i].Reader = file
	}
	result, err := execlog.Compare(logs[0], logs[1], execlog.Secrets{Value: manifest.SecretValue, File: manifest.CredentialFile}, execlog.Limits{})
	if err != nil {
		return err
	}
	data := []byte(strings.TrimSuffix(result.Text(), "\n"))
	if c.JSON {
		if data, err = canon.Marshal(result); err != nil {
			return err
		}
	}
	if err := writeResult(std, c.Output, data); err != nil {
		return err
	}
	if result.Equal {
		return nil
	}
	return &failure{reason: result.Summary()}
}
