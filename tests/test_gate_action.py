"""The action of GitHub for gates, whose steps are executed in a clean clone without GitHub."""

from pathlib import Path

import pytest
import yaml
from docker.local_action import ACTION, ROOT, clone, run_action


def test_the_action_is_made_of_scripts_alone() -> None:
    action = yaml.safe_load((ROOT / ACTION).read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in action["runs"]["steps"])
    script = (ROOT / ACTION).with_name("gate.sh").read_text(encoding="utf-8")
    (gate,) = [step for step in action["runs"]["steps"] if step.get("id") == "gate"]
    assert all(f"${name}" in script for name in gate["env"])
    assert {f"GATE_{name.upper().replace('-', '_')}" for name in action["inputs"]} - set(gate["env"]) == {"GATE_PACKAGE"}


def test_inputs_that_the_action_does_not_have(tmp_path: Path) -> None:
    (tmp_path / ACTION).parent.mkdir(parents=True)
    (tmp_path / ACTION).write_text((ROOT / ACTION).read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ValueError, match="no input nothing"):
        run_action(tmp_path, {"experiment": "a.toml", "nothing": "1"})
    with pytest.raises(ValueError, match="needs the input experiment"):
        run_action(tmp_path, {})


@pytest.mark.long("measures a gate twice, in a clone of the repository")
def test_the_action_fails_for_a_slower_head_and_says_so(tmp_path: Path) -> None:
    checkout = clone(ROOT, tmp_path / "clone")
    common = {"experiment": "docs/example/gate.toml"}
    # Its second target has no index.
    slower = run_action(checkout, common)
    assert (slower.exit_code, slower.outputs["verdict"]) == (1, "slower")
    assert "**slower**" in slower.summary
    assert (checkout / slower.outputs["report"]).exists()
    assert (checkout / "sensorbench-gate.xml").exists()
    # What is undecided fails, unless the workflow says otherwise; what is wrong fails in any case.
    undecided = {**common, "budget": "1ms", "out": "second"}
    assert run_action(checkout, undecided).exit_code == 3
    passed = run_action(checkout, {**undecided, "out": "third", "undecided": "pass"})
    assert (passed.exit_code, passed.outputs["verdict"]) == (0, "undecided")
    wrong = run_action(checkout, {"experiment": "nothing.toml", "undecided": "pass", "out": "fourth"})
    assert (wrong.exit_code, wrong.outputs["verdict"]) == (2, "failed")
