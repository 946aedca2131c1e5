package main

import (
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/profile"
)

type profileCommands struct {
	Compile profileCompile `cmd:"" help:"Verify the sources, and compile a profile into an empty folder."`
	Verify  profileVerify  `cmd:"" help:"Hold a compiled profile against its manifest."`
}

type profileCompile struct {
	roots
	documents
	inputList
	Manifest string `placeholder:"FILE" required:"" help:"Identity manifest."`
	Profile  string `placeholder:"DIR" required:"" help:"Where to put the profile: a new path, or an empty folder."`
	JSON     bool   `help:"Write the result as JSON."`
}

func (c *profileCompile) Run(std streams) error {
	m, err := readManifest(c.Manifest)
	if err != nil {
		return err
	}
	s, err := sourcesOf(m, c.roots, c.documents, c.inputList)
	if err != nil {
		return err
	}
	differences, err := manifest.Verify(m, s)
	if err != nil {
		return err
	}
	if len(differences) == 0 {
		if err := profile.Compile(m, s.Template, c.Profile, profile.Options{Durable: true}); err != nil {
			return err
		}
	}
	return verdict(std, m, differences, c.JSON)
}

type profileVerify struct {
	Manifest string `placeholder:"FILE" required:"" help:"Identity manifest."`
	Profile  string `placeholder:"DIR" required:"" help:"Compiled profile."`
	JSON     bool   `help:"Write the differences as JSON."`
}

func (c *profileVerify) Run(std streams) error {
	m, err := readManifest(c.Manifest)
	if err != nil {
		return err
	}
	differences, err := profile.Verify(c.Profile, m)
	if err != nil {
		return err
	}
	return verdict(std, m, differences, c.JSON)
}
