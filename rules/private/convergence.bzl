"""convergence_test: recorded repair rounds, walked under the convergence law."""

load(":command.bzl", "COMMAND_ATTRS", "command_test")

# The stop reasons and statuses of rpi; //rpi/skill holds them against the program.
_STOP_REASONS = [
    "converged",
    "diversity_unsatisfied",
    "repair_budget_exhausted",
    "reopened_finding",
    "recurring_finding_class",
    "introduced_regression",
    "new_finding_requires_causal_review",
    "no_acceptance_progress",
    "not_converged",
]
_STATUSES = ["PASS", "FAIL", "NOT_PROVEN"]

def _convergence_test_impl(ctx):
    args = [
        "rpi",
        "repair",
        "--rounds",
        ctx.file.rounds.short_path,
        "--expect-stop-reason",
        ctx.attr.expect_stop_reason,
        "--expect-status",
        ctx.attr.expect_status,
    ]
    if ctx.attr.repair_rounds >= 0:
        args += ["--repair-rounds", str(ctx.attr.repair_rounds)]
    if ctx.attr.cross_model:
        args.append("--cross-model")
    return command_test(ctx, args, [ctx.file.rounds])

convergence_test = rule(
    implementation = _convergence_test_impl,
    doc = """Passes when recorded rounds stop for the expected reason with the expected status.

The outcome (rpi-outcome.v1) is `result.json` in the test's undeclared outputs. `selfsame rpi explain` tells why a
repair stopped where it did.""",
    attrs = COMMAND_ATTRS | {
        "cross_model": attr.bool(
            doc = "Ask for a second validator family. Default: what the document's options say.",
        ),
        "expect_status": attr.string(
            doc = "Expected status of the report: PASS (default), FAIL or NOT_PROVEN.",
            default = "PASS",
            values = _STATUSES,
        ),
        "expect_stop_reason": attr.string(
            doc = "Expected stop reason. Default: converged.",
            default = "converged",
            values = _STOP_REASONS,
        ),
        "repair_rounds": attr.int(
            doc = "Bound of repair rounds. Default: -1, what the document's options say, else 2.",
            default = -1,
        ),
        "rounds": attr.label(
            doc = "rpi-rounds.v1 (required): a list of rounds, or an object with `validations` and `options`.",
            allow_single_file = [".json"],
            mandatory = True,
        ),
    },
    test = True,
)
