#!/usr/bin/env bash
# Made by a test rule. The result is a file of the test's undeclared outputs.
exec %{command} --output "$TEST_UNDECLARED_OUTPUTS_DIR/result.json"
