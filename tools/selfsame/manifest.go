package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/source"
)

type manifestCommands struct {
	Behavior manifestBehavior `cmd:"" help:"Observe what the profile template and the code roots bring into an answer."`
	Generate manifestGenerate `cmd:"" help:"Pin the identity: the behavior manifest, the database, the constitution."`
	Verify   manifestVerify   `cmd:"" help:"Rebuild a manifest from its sources and name every difference."`
	Explain  manifestExplain  `cmd:"" help:"Show every surface, its binding and its authority."`
}

// roots are the folders that are observed.
type roots struct {
	ProfileTemplate string `placeholder:"DIR" help:"Profile template."`
	HermesRoot      string `placeholder:"DIR" help:"Tree of the runtime's code."`
	DeploymentRoot  string `placeholder:"DIR" help:"Tree of the deployment's code."`
}

// documents are the committed files that a manifest is made from.
type documents struct {
	SourceRoot          string `placeholder:"DIR" default:"." help:"Folder that committed inputs are named relative to (default: the current one)."`
	DatabaseFingerprint string `placeholder:"FILE" help:"database-fingerprint.v1."`
	Constitution        string `placeholder:"FILE" help:"identity-constitution.v1."`
	DatabaseIdentity    string `placeholder:"FILE" help:"database-identity.v1."`
}

func (d documents) files() []string {
	return []string{d.DatabaseFingerprint, d.Constitution, d.DatabaseIdentity}
}

type inputList struct {
	InputList string `placeholder:"FILE" help:"Instead of folders: lines of part TAB logical path TAB file."`
}

func (r roots) missing() error {
	return required(map[string]string{"--profile-template": r.ProfileTemplate, "--hermes-root": r.HermesRoot, "--deployment-root": r.DeploymentRoot},
		"--profile-template", "--hermes-root", "--deployment-root")
}

func (d documents) missing() error {
	return required(map[string]string{"--database-fingerprint": d.DatabaseFingerprint, "--constitution": d.Constitution, "--database-identity": d.DatabaseIdentity},
		"--database-fingerprint", "--constitution", "--database-identity")
}

func required(values map[string]string, order ...string) error {
	missing := slices.DeleteFunc(order, func(flag string) bool { return values[flag] != "" })
	if len(missing) > 0 {
		return &refusal{"missing flags: " + strings.Join(missing, ", ")}
	}
	return nil
}

func paths(r roots, d documents) source.Paths {
	return source.Paths{ProfileTemplate: r.ProfileTemplate, HermesRoot: r.HermesRoot, DeploymentRoot: r.DeploymentRoot,
		SourceRoot: d.SourceRoot, DatabaseFingerprint: d.DatabaseFingerprint, Constitution: d.Constitution, DatabaseIdentity: d.DatabaseIdentity}
}

type manifestBehavior struct {
	ProfileTemplate string `aliases:"profile" placeholder:"DIR" required:"" help:"Profile template."`
	HermesRoot      string `placeholder:"DIR" required:"" help:"Tree of the runtime's code."`
	DeploymentRoot  string `placeholder:"DIR" required:"" help:"Tree of the deployment's code."`
	sourceBundles
	ObservationKey string `placeholder:"FILE" help:"Local key for the operational observation; made when missing, never copied anywhere."`
	Output         string `placeholder:"FILE" help:"Where to write the manifest (default: standard output)."`
}

func (c *manifestBehavior) Run(std streams) error {
	p := source.Paths{ProfileTemplate: c.ProfileTemplate, HermesRoot: c.HermesRoot, DeploymentRoot: c.DeploymentRoot, ObservationKey: c.ObservationKey}
	origins, err := source.Origins(p, c.Bundle)
	if err != nil {
		return err
	}
	s, err := source.Behavior(p)
	if err != nil {
		return err
	}
	s.Origins = origins
	b, err := manifest.Observe(s)
	if err != nil {
		return err
	}
	for _, key := range b.Operational.Config.UnknownKeys {
		fmt.Fprintf(std.err, "selfsame: note: %s: unknown key, not copied: %s\n", manifest.ConfigFile, key)
	}
	data, err := b.Encode()
	if err != nil {
		return err
	}
	return writeResult(std, c.Output, data)
}

// sourceBundles bind roots that are no clean Git work trees.
type sourceBundles struct {
	Bundle map[string]string `mapsep:"none" placeholder:"ROOT=FILE" help:"Source bundle that binds a root (its flag without the dashes) in place of a clean commit."`
}

type manifestGenerate struct {
	documents
	inputList
	sourceBundles
	BehaviorManifest string `placeholder:"FILE" help:"behavior-manifest.v1."`
	Output           string `placeholder:"FILE" required:"" help:"Where to write the manifest."`
	Digest           string `placeholder:"FILE" help:"Where to write manifest_sha256 (default: the output with .sha256)."`
	Provenance       string `placeholder:"FILE" help:"Where to write identity-provenance.v1."`
	BehaviorOutput   string `placeholder:"FILE" help:"With --input-list: where to write the behavior manifest."`
	JSON             bool   `help:"Write the digests as JSON."`
}

func (c *manifestGenerate) Run(std streams) error {
	if c.BehaviorOutput != "" && c.InputList == "" {
		return &refusal{"--behavior-output goes with --input-list alone: else the manifest is given"}
	}
	for _, output := range []string{c.Output, c.Digest, c.Provenance, c.BehaviorOutput} {
		if err := noInput(output, append(c.documents.files(), c.InputList, c.BehaviorManifest)...); err != nil {
			return err
		}
	}
	b, s, origins, err := c.inputs()
	if err != nil {
		return err
	}
	m, err := manifest.Generate(b, s)
	if err != nil {
		return err
	}
	data, err := m.Encode()
	if err != nil {
		return err
	}
	sum := canon.Sum(data)
	digest := c.Digest
	if digest == "" {
		digest = c.Output + ".sha256"
	}
	outputs, err := beside(m, b, origins, digest, c.Provenance, c.BehaviorOutput)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteAll(0o644, append(outputs, atomicfile.File{Path: c.Output, Data: data})...); err != nil {
		return err
	}
	if c.JSON {
		_, err = fmt.Fprintf(std.out, "{\"identity_sha256\":\"%s\",\"manifest_sha256\":\"%s\"}\n", m.IdentitySHA256, sum)
	} else {
		_, err = fmt.Fprintf(std.out, "identity_sha256 %s\nmanifest_sha256 %s\n", m.IdentitySHA256, sum)
	}
	return err
}

// beside returns what belongs into the files beside m; those without a name are left out.
func beside(m *manifest.Manifest, b *manifest.Behavior, origins []manifest.Origin, digest, provenance, behavior string) ([]atomicfile.File, error) {
	var out []atomicfile.File
	if digest != "" {
		sum, err := m.SHA256()
		if err != nil {
			return nil, err
		}
		out = append(out, atomicfile.File{Path: digest, Data: []byte(sum.String() + "\n")})
	}
	if provenance != "" {
		p, err := manifest.ProvenanceOf(m, append(slices.Clone(b.Operational.Origins), origins...))
		if err != nil {
			return nil, err
		}
		data, err := canon.Marshal(p)
		if err != nil {
			return nil, err
		}
		out = append(out, atomicfile.File{Path: provenance, Data: data})
	}
	if behavior != "" {
		data, err := b.Encode()
		if err != nil {
			return nil, err
		}
		out = append(out, atomicfile.File{Path: behavior, Data: data})
	}
	return out, nil
}

func (c *manifestGenerate) inputs() (*manifest.Behavior, manifest.Sources, []manifest.Origin, error) {
	if c.InputList != "" {
		if len(c.Bundle) > 0 {
			return nil, manifest.Sources{}, nil, &refusal{"--bundle does not go with --input-list, which is content-addressed"}
		}
		s, err := source.List(c.InputList)
		if err != nil {
			return nil, s, nil, err
		}
		b, err := manifest.Observe(s)
		return b, s, source.ContentAddressed(), err
	}
	if err := c.documents.missing(); err != nil {
		return nil, manifest.Sources{}, nil, err
	}
	if c.BehaviorManifest == "" {
		return nil, manifest.Sources{}, nil, &refusal{"missing flag --behavior-manifest (or --input-list)"}
	}
	p := paths(roots{}, c.documents)
	s, err := source.Documents(p)
	if err != nil {
		return nil, s, nil, err
	}
	origins, err := source.Origins(p, c.Bundle)
	if err != nil {
		return nil, s, nil, err
	}
	data, err := os.ReadFile(c.BehaviorManifest)
	if err != nil {
		return nil, s, nil, err
	}
	b, err := manifest.DecodeBehavior(c.BehaviorManifest, data)
	return b, s, origins, err
}

type manifestVerify struct {
	roots
	documents
	inputList
	Manifest         string `placeholder:"FILE" required:"" help:"Manifest to verify."`
	Digest           string `placeholder:"FILE" help:"With --input-list: manifest_sha256 beside it, to verify too."`
	Provenance       string `placeholder:"FILE" help:"With --input-list: identity-provenance.v1 beside it, to verify too."`
	BehaviorManifest string `placeholder:"FILE" help:"With --input-list: behavior-manifest.v1 beside it, to verify too."`
	JSON             bool   `help:"Write the differences as JSON."`
	Output           string `placeholder:"FILE" help:"Where to write the result (default: standard output)."`
}

func (c *manifestVerify) Run(std streams) error {
	m, err := readManifest(c.Manifest)
	if err != nil {
		return err
	}
	if c.InputList == "" && c.Digest+c.Provenance+c.BehaviorManifest != "" {
		return &refusal{"--digest, --provenance and --behavior-manifest go with --input-list"}
	}
	s, err := sourcesOf(m, c.roots, c.documents, c.inputList)
	if err != nil {
		return err
	}
	differences, err := manifest.Verify(m, s)
	if err != nil {
		return err
	}
	if len(differences) == 0 && c.InputList != "" {
		if differences, err = c.besides(s); err != nil {
			return err
		}
	}
	return verdict(std, m, differences, c.JSON, c.Output)
}

// besides makes the manifest and the named files beside it anew, and compares bytes: a manifest whose
// digest file came from elsewhere is not what Bazel was asked for.
func (c *manifestVerify) besides(s manifest.Sources) ([]manifest.Difference, error) {
	b, err := manifest.Observe(s)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Generate(b, s)
	if err != nil {
		return nil, err
	}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	outputs, err := beside(m, b, source.ContentAddressed(), c.Digest, c.Provenance, c.BehaviorManifest)
	if err != nil {
		return nil, err
	}
	return besidesOf(append([]atomicfile.File{{Path: c.Manifest, Data: data}}, outputs...)...)
}

// generatedFiles is the surface of files that the tool makes for an identity.
const generatedFiles manifest.Surface = "generated-files"

// besidesOf names the files that do not hold what they should.
func besidesOf(outputs ...atomicfile.File) ([]manifest.Difference, error) {
	var out []manifest.Difference
	for _, o := range outputs {
		have, err := os.ReadFile(o.Path)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(have, o.Data) {
			content := func(data []byte) string { return fmt.Sprintf("sha256 %s, %d bytes", canon.Sum(data), len(data)) }
			out = append(out, manifest.Difference{Surface: generatedFiles, Class: manifest.Changed, Path: filepath.Base(o.Path),
				Expected: content(o.Data), Actual: content(have)})
		}
	}
	return out, nil
}

type manifestExplain struct {
	Manifest string `placeholder:"FILE" required:"" help:"Manifest to explain."`
}

func (c *manifestExplain) Run(std streams) error {
	m, err := readManifest(c.Manifest)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(std.out, manifest.Explain(m))
	return err
}

func readManifest(file string) (*manifest.Manifest, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return manifest.Decode(filepath.Base(file), data)
}

// sourcesOf reads the sources of a manifest from a list, or from folders.
func sourcesOf(m *manifest.Manifest, r roots, d documents, l inputList) (manifest.Sources, error) {
	if l.InputList != "" {
		return source.List(l.InputList)
	}
	if err := r.missing(); err != nil {
		return manifest.Sources{}, err
	}
	return source.Folders(source.ForManifest(m, paths(r, d)))
}

// verification is the result of a verification with --json.
type verification struct {
	Holds          bool                  `json:"holds"`
	IdentitySHA256 canon.Digest          `json:"identity_sha256"`
	Differences    []manifest.Difference `json:"differences"`
}

// verdict writes the result of a verification to the file output, or to standard output; a difference is a failure.
func verdict(std streams, m *manifest.Manifest, differences []manifest.Difference, asJSON bool, output string) error {
	var data []byte
	if asJSON {
		var err error
		if data, err = canon.Marshal(verification{len(differences) == 0, m.IdentitySHA256, differences}); err != nil {
			return err
		}
	} else if len(differences) == 0 {
		data = fmt.Appendf(nil, "holds: identity_sha256 %s", m.IdentitySHA256)
	} else {
		for _, d := range differences {
			data = fmt.Appendln(data, d)
		}
		data = data[:len(data)-1]
	}
	if err := writeResult(std, output, data); err != nil {
		return err
	}
	if n := len(differences); n > 0 {
		return &failure{reason: fmt.Sprintf("drift: %d differences, the first in %s: %s", n, differences[0].Surface, differences[0].Path)}
	}
	return nil
}
