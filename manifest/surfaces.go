package manifest

// Surface names one thing that can change what the agent answers. Differences, drift
// receipts and explanations use these names.
type Surface string

// The pinned surfaces: a change in one changes identity_sha256.
const (
	RuntimeConfig    Surface = "runtime-config"
	Permissions      Surface = "permissions"
	HermesCode       Surface = "hermes-code"
	DeploymentCode   Surface = "deployment-code"
	RuntimeABI       Surface = "runtime-abi"
	Skills           Surface = "skills"
	Plugins          Surface = "plugins"
	DatabaseTools    Surface = "database-tools"
	Constitution     Surface = "constitution"
	DatabaseSnapshot Surface = "database-snapshot"
	IdentityRows     Surface = "identity-rows"
	CompiledViews    Surface = "compiled-views"
)

// ProfileTemplate is the top level of the template; CompiledProfile is a compiled profile as a whole.
// Both appear in differences only: what they hold is pinned by the surfaces above.
const (
	ProfileTemplate Surface = "profile-template"
	CompiledProfile Surface = "compiled-profile"
)

// Authority says what a surface may be used for.
type Authority string

const (
	RuntimeInput    Authority = "runtime_input"
	StaticAuthority Authority = "static_authority"
	Noncanonical    Authority = "noncanonical_fixture"
	GeneratedView   Authority = "generated_view"
	Capability      Authority = "runtime_capability"
	ContinuityOnly  Authority = "continuity_only"
	NeverClaimed    Authority = "never_claimed"
	ProvenanceOnly  Authority = "provenance_only"
)

// Declaration is one row of the inventory: how a surface is bound, and with which authority. It
// is pinned when its content is part of the identity.
type Declaration struct {
	Surface   Surface   `json:"surface"`
	Binding   string    `json:"binding"`
	Authority Authority `json:"authority"`
	Pinned    bool      `json:"pinned"`
	Note      string    `json:"note"`
}

// Inventory returns every surface of the source document's inventory table ("Identity
// input inventory"), in its order, those outside identity included.
func Inventory() []Declaration {
	return []Declaration{
		{RuntimeConfig, "secret_free_semantic_hash", RuntimeInput, true,
			"model, provider, route, limits and reasoning settings; which model really answers is a receipt of each turn"},
		{"hosted-weights", "provider_managed_not_locally_hashable", NeverClaimed, false,
			"no local hash of the weights exists or is claimed"},
		{HermesCode, "source_tree_hash", RuntimeInput, true, "declared selection of files; the Git commit is provenance"},
		{DeploymentCode, "source_tree_hash", RuntimeInput, true, "declared selection of files; the Git commit is provenance"},
		{"git-provenance", "provenance_file", ProvenanceOnly, false, "commit and cleanliness, bound by digests in identity-provenance.v1"},
		{RuntimeABI, "static_reading", RuntimeInput, true, "exact implementation and version, curated packages, Go programs; nothing is executed"},
		{Skills, "content_hash", RuntimeInput, true, "every file"},
		{Plugins, "content_hash", RuntimeInput, true, "every file"},
		{DatabaseTools, "content_hash", RuntimeInput, true, "every file"},
		{Permissions, "strict_allowlist_and_exact_policy", RuntimeInput, true,
			"no-send and read-only by configuration; an authorizer readback is not claimed"},
		{"credentials", "omitted", Capability, false, "never copied, never hashed; rotation shows only in the keyed operational observation"},
		{Constitution, "path_byte_and_semantic_hash", StaticAuthority, true, "committed static rules"},
		{DatabaseSnapshot, "database_fingerprint", Noncanonical, true,
			"database, user, system identity, content, rows, structure and capture provenance; cannot grant canonical authority"},
		{"wal-position", "excluded", ProvenanceOnly, false, "moves without a change of content"},
		{IdentityRows, "typed_row_bindings", Noncanonical, true, "synthetic rows with rank and evidence; canonical authority needs a verified exporter"},
		{CompiledViews, "deterministic_view_hash", GeneratedView, true, "SOUL.md and identity.json; never authorities"},
		{"sessions", "excluded", ContinuityOnly, false, "temporary; never evidence"},
		{"state", "excluded", ContinuityOnly, false, "temporary; never evidence"},
		{"memory", "excluded", ContinuityOnly, false, "temporary; never evidence; absent from a compiled profile"},
		{"project-context", "absent", ContinuityOnly, false, "absent from a compiled profile"},
		{"pairing", "absent", ContinuityOnly, false, "absent from a compiled profile"},
	}
}
