package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/bundle"
	"selfsame.dev/selfsame/manifest/bundle/disk"
	"selfsame.dev/selfsame/manifest/source"
)

type bundleCommands struct {
	Create  bundleCreate  `cmd:"" help:"Write a source tree as one file with one digest."`
	Verify  bundleVerify  `cmd:"" help:"Check every byte of a bundle, without extracting it."`
	Extract bundleExtract `cmd:"" help:"Check a bundle and put its tree into a new folder, whole or not at all."`
}

type bundleCreate struct {
	Root    string   `placeholder:"DIR" required:"" help:"Source tree."`
	Include []string `sep:"none" placeholder:"PATTERN" help:"Files to take (default: as selfsame-root.json of the tree says, or all); the metadata of Git never."`
	Exclude []string `sep:"none" placeholder:"PATTERN" help:"Files to leave out."`
	Level   string   `enum:"${bundle_levels}" default:"default" help:"Compression: ${bundle_levels}. It is not part of the identity."`
	Output  string   `placeholder:"FILE" required:"" help:"Where to write the bundle."`
	JSON    bool     `help:"Write the result as JSON."`
}

func (c *bundleCreate) Run(ctx context.Context, std streams) error {
	selection := manifest.CodeRoot{Include: c.Include, Exclude: c.Exclude}.Selection()
	if len(c.Include)+len(c.Exclude) == 0 {
		var err error
		if selection, err = source.CodeSelection(c.Root); err != nil {
			return err
		}
	}
	var s bundle.Summary
	err := atomicfile.Create(c.Output, 0o644, func(w io.Writer) error {
		packed, err := bundle.Compress(w, c.Level)
		if err != nil {
			return err
		}
		m := newMeter(ctx, std.err, 0)
		defer m.close()
		s, err = disk.Create(io.MultiWriter(m, packed), c.Root, selection)
		return errors.Join(err, packed.Close())
	})
	if err != nil {
		return err
	}
	return writeBundle(std, s, c.JSON)
}

// bundleInput is a bundle to read, how much of it, and what it has to be.
type bundleInput struct {
	Bundle   string `placeholder:"FILE" required:"" help:"Bundle, or - for standard input."`
	SHA256   string `name:"sha256" placeholder:"DIGEST" help:"bundle_sha256 that it must have."`
	MaxFiles int64  `default:"${bundle_files}" help:"Refuse a bundle of more files (default: ${default})."`
	MaxBytes int64  `default:"${bundle_bytes}" help:"Refuse a bundle of more bytes of content (default: ${default})."`
	JSON     bool   `help:"Write the result as JSON."`
}

// read gives the bundle to use, and a check of its identity.
func (c *bundleInput) read(ctx context.Context, std streams, use func(io.Reader, bundle.Limits, func(bundle.Summary) error) (bundle.Summary, error)) error {
	limits := bundle.DefaultLimits
	limits.Files, limits.Bytes = c.MaxFiles, c.MaxBytes
	var want canon.Digest
	if c.SHA256 != "" {
		var err error
		if want, err = canon.ParseDigest(c.SHA256); err != nil {
			return &refusal{"--sha256: " + err.Error()}
		}
	}
	in, name, size := std.in, "standard input", int64(0)
	if c.Bundle != "-" {
		f, err := os.Open(c.Bundle)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		in, name, size = f, c.Bundle, info.Size()
	}
	m := newMeter(ctx, std.err, size)
	s, err := use(io.TeeReader(in, m), limits, func(s bundle.Summary) error {
		if c.SHA256 != "" && s.SHA256 != want {
			return &failure{reason: fmt.Sprintf("%s has bundle_sha256 %s, expected %s", name, s.SHA256, want)}
		}
		return nil
	})
	m.close()
	if err != nil {
		var failed *failure
		if errors.As(err, &failed) {
			return err
		}
		return canon.InFile(name, err)
	}
	return writeBundle(std, s, c.JSON)
}

type bundleVerify struct{ bundleInput }

func (c *bundleVerify) Run(ctx context.Context, std streams) error {
	return c.read(ctx, std, func(r io.Reader, limits bundle.Limits, accept func(bundle.Summary) error) (bundle.Summary, error) {
		s, err := bundle.Verify(r, limits)
		if err == nil {
			err = accept(s)
		}
		return s, err
	})
}

type bundleExtract struct {
	bundleInput
	Target string `placeholder:"DIR" required:"" help:"Where to put the tree: a new path, or an empty folder."`
}

func (c *bundleExtract) Run(ctx context.Context, std streams) error {
	return c.read(ctx, std, func(r io.Reader, limits bundle.Limits, accept func(bundle.Summary) error) (bundle.Summary, error) {
		return disk.Extract(r, limits, c.Target, accept)
	})
}

func writeBundle(std streams, s bundle.Summary, asJSON bool) error {
	text := fmt.Appendf(nil, "bundle_sha256 %s\ntree_sha256 %s\nfile_count %d\ntotal_bytes %d", s.SHA256, s.Tree.Digest, s.Tree.FileCount, s.Tree.TotalBytes)
	if asJSON {
		var err error
		if text, err = canon.Marshal(s); err != nil {
			return err
		}
	}
	return writeResult(std, "", text)
}

// bundleVars are what the help of the bundle commands is made of.
var bundleVars = map[string]string{
	"bundle_levels": strings.Join(bundle.Levels, ","),
	"bundle_files":  fmt.Sprint(bundle.DefaultLimits.Files),
	"bundle_bytes":  fmt.Sprint(bundle.DefaultLimits.Bytes),
}

// meter counts the bytes that pass, fails when the context has ended, and once work takes long
// shows how far it is, on a terminal only.
type meter struct {
	ctx         context.Context
	terminal    io.Writer // nil: show nothing
	done, total int64     // total 0 is not known
	next        time.Time
	shown       bool
}

const (
	longWork = 2 * time.Second
	interval = 200 * time.Millisecond
)

func newMeter(ctx context.Context, w io.Writer, total int64) *meter {
	m := &meter{ctx: ctx, total: total, next: time.Now().Add(longWork)}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			m.terminal = w
		}
	}
	return m
}

func (m *meter) Write(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	m.done += int64(len(p))
	if now := time.Now(); m.terminal != nil && now.After(m.next) {
		m.next, m.shown = now.Add(interval), true
		share := ""
		if m.total > 0 {
			share = fmt.Sprintf(" of %.1f MB (%d%%)", float64(m.total)/1e6, 100*m.done/m.total)
		}
		fmt.Fprintf(m.terminal, "\r\x1b[Kselfsame: bundle: %.1f MB%s", float64(m.done)/1e6, share)
	}
	return len(p), nil
}

// close clears what was shown.
func (m *meter) close() {
	if m.shown {
		fmt.Fprint(m.terminal, "\r\x1b[K")
	}
}
