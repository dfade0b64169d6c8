#!/usr/bin/env bash
# Runs a gate as the inputs of the action say, and hands its verdict and its summary to GitHub. Ends as the gate ends.
set -euo pipefail

arguments=(
  "$GATE_EXPERIMENT" --margin "$GATE_MARGIN" --repetitions "$GATE_REPETITIONS" --budget "$GATE_BUDGET" --out "$GATE_OUT"
  --junit "$GATE_OUT.xml" --markdown "$GATE_OUT.md" --badge "$GATE_OUT-badge.json" --no-open
)

# Each line of an input is an option of its own.
add() {
  local line
  while IFS= read -r line; do
    if [ -n "$line" ]; then arguments+=("$1" "$line"); fi
  done <<< "$2"
}
add --base "$GATE_BASE"
add --head "$GATE_HEAD"
add --base-server-setting "$GATE_BASE_SERVER_SETTING"
add --head-server-setting "$GATE_HEAD_SERVER_SETTING"

case "$GATE_UNDECIDED" in
  fail | pass) ;;
  *) echo "undecided: $GATE_UNDECIDED: expected fail or pass" >&2; exit 2 ;;
esac

code=0
sensorbench gate "${arguments[@]}" || code=$?

verdict=failed
if [ -f "$GATE_OUT/gate.json" ]; then
  verdict=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1], encoding="utf-8"))["verdict"])' "$GATE_OUT/gate.json")
  cat "$GATE_OUT.md" >> "$GITHUB_STEP_SUMMARY"
fi
{
  echo "verdict=$verdict"
  echo "report=$GATE_OUT/report.html"
} >> "$GITHUB_OUTPUT"

if [ "$code" = 3 ] && [ "$GATE_UNDECIDED" = pass ]; then
  echo "::warning::the gate is undecided, and passes because the workflow says so"
  code=0
fi
exit "$code"
