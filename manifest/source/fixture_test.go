package source_test

import (
	"fmt"
	"testing"

	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/source"
)

func TestTry(t *testing.T) {
	root := "../.."
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
	data, _ := m.Encode()
	if _, err := manifest.Decode("m", data); err != nil {
		t.Fatal(err)
	}
	d, err := manifest.Verify(m, s)
	fmt.Println(d, err)
	fmt.Println(manifest.Explain(m))
	soul, _ := m.Identity.Soul()
	fmt.Println(string(soul))
	y, _ := manifest.ConfigYAML(m.Identity.Inputs.Behavior.RuntimeConfig, manifest.Settings{Values: m.Identity.Inputs.Behavior.Permissions.Values})
	fmt.Println(string(y))
}
