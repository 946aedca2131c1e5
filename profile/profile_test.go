package profile_test

import (
	"testing"
	"time"

	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/source"
	"selfsame.dev/selfsame/profile"
)

func TestTry(t *testing.T) {
	root := ".."
	f := root + "/fixtures/working-leo/leo-identity-v1/"
	s, err := source.Folders(source.Paths{ProfileTemplate: f + "profile-template", HermesRoot: f + "hermes-runtime", DeploymentRoot: f + "teleo-deployment",
		SourceRoot: root, DatabaseFingerprint: f + "leo-database-fingerprint-v1.json", Constitution: f + "leo-constitution-v1.json", DatabaseIdentity: f + "leo-database-identity-v1.json"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Build(s)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	at := time.Now()
	if err := profile.Compile(m, s.Template, t.TempDir()+"/p", profile.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(at))
	dir := t.TempDir()
	if err := profile.Compile(m, s.Template, dir, profile.Options{}); err != nil {
		t.Fatal(err)
	}
	at = time.Now()
	d, err := profile.Verify(dir, m)
	t.Log(time.Since(at), d, err)
}
