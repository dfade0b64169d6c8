"""Clusters of users: what their file may say, which words are run, what is set and put back; and tuning a real server that is somebody's."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from sensorbench import lab
from sensorbench.errors import ClusterLostError, FailedError, UsageError
from sensorbench.lab.databases.redis_pipe import libraries, program
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.state_dirs import software_folder
from sensorbench.progress import ProgressReporter
from sensorbench.runner.user_cluster.cluster import UserCluster
from sensorbench.runner.user_cluster.editing import with_parameters
from sensorbench.runner.user_cluster.file import ClusterNode, ParameterWay, load_cluster_file
from sensorbench.runner.user_cluster.node import Node
from sensorbench.runner.user_cluster.saved import SavedCluster, SavedFile
from sensorbench.runner.user_cluster.words import checked_words, filled, output_without_secrets
from tests.conftest import Cli

ROOT = Path(__file__).parent.parent
RESTART = Path(__file__).parent / "restart_server.py"

# The file

HEAD = 'url = "redis://127.0.0.1:1"\n[commands]\nrestart = ["true"]\n'
WAY = '[[parameters]]\nfile = "/etc/x.conf"\nline = "{name} {value}"\n'
NODE = '[[nodes]]\naddress = "127.0.0.1:1"\nlocal = true\n'


def test_a_file_says_how_each_parameter_is_set(tmp_path: Path) -> None:
    ways = '[[parameters]]\nnames = ["heap", "jvm.*"]\nfile = "/etc/jvm"\nline = "-D{name}={value}"\n' + WAY
    file = written(tmp_path, 'leave = ["old"]\n' + HEAD + ways + NODE + 'status = ["status", "{port}"]\n')
    read = load_cluster_file(file)
    assert [way.file if (way := read.way(name)) else None for name in ("heap", "jvm.x", "hz", "old")] == [
        "/etc/jvm",
        "/etc/jvm",
        "/etc/x.conf",
        None,
    ]
    assert read.command("restart", read.nodes[0]) == ["true"]
    assert read.command("status", read.nodes[0]) == ["status", "{port}"]
    cluster = UserCluster.load(file)
    cluster.check_settable(["heap", "hz", "old"])
    with pytest.raises(UsageError, match=r"drop_caches is missing for node 127\.0\.0\.1:1"):
        cluster.check_empties_caches()


def test_a_parameter_that_no_entry_sets_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, HEAD + WAY.replace("[[parameters]]\n", '[[parameters]]\nnames = ["hz"]\n') + NODE)
    with pytest.raises(UsageError, match=r'parameters: none is for io-threads.*leave = \["io-threads"\]'):
        UserCluster.load(file).check_settable(["hz", "io-threads"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + WAY, "nodes: this key is missing"),
        ("url =\n", "line 1: "),
        (HEAD + WAY + NODE + 'sssh = "x"\n', r"line 10, nodes\[0\].sssh: unknown key"),
        (HEAD + WAY + NODE.replace("127.0.0.1:1", "127.0.0.1"), r"line 7, nodes\[0\]: address '127.0.0.1': expected HOST:PORT"),
        (HEAD + WAY + NODE.replace("local = true", ""), "expected either ssh = .* or local = true"),
        (HEAD + WAY + NODE + 'ssh = "a@b"\n', "expected either ssh = .* or local = true"),
        (HEAD + WAY + NODE.replace("local = true", 'ssh = "-oProxyCommand=x"'), "expected USER@HOST"),
        (HEAD.replace('["true"]', '"true; rm x"') + WAY + NODE, "line 3, commands.restart: .*list"),
        (HEAD.replace('["true"]', "[]") + WAY + NODE, "line 3, commands.restart: expected a command as a list of words"),
        (HEAD.replace('["true"]', '["x", "--port={port}"]') + WAY + NODE, "{port} must be a word of its own"),
        (HEAD.replace("restart", "status") + WAY + NODE, "127.0.0.1:1 has no restart"),
        (
            HEAD.replace('"true"', '"x", "{env:NOT_SET_ANYWHERE}"') + WAY + NODE,
            "line 3, commands.restart: .*this variable is not set",
        ),
        (HEAD + WAY.replace("{name} ", "") + NODE, r"line 4, parameters\[0\]: line must have {name}"),
        (HEAD + WAY.replace("{value}", "1") + NODE, "line must have {value}"),
        (HEAD + WAY.replace("/etc/x.conf", "x.conf") + NODE, "expected a path that begins with /"),
        (HEAD + WAY + 'set = ["set", "{value}"]\n' + NODE, "expected either file, or set"),
        (HEAD + '[[parameters]]\nset = ["set", "{name}", "{value}"]\n' + NODE, "expected either get or unset"),
        (HEAD + '[[parameters]]\nset = ["set", "{name}"]\nunset = ["u"]\n' + NODE, "set must have the word {value}"),
        (HEAD + WAY + NODE + NODE, "127.0.0.1:1 appears twice"),
        ('back_within = "soon"\n' + HEAD + WAY + NODE, "line 1, back_within: .*expected a length of time"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_key(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected) as error:
        load_cluster_file(written(tmp_path, text))
    assert "cluster.toml" in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("tune", "--cluster", "nowhere.toml", "--goal", "load"), "nowhere.toml: no such file"),
        (("tune", "--cluster", "cluster.toml", "--goal", "load", "--target", "redis"), "leave out --target, or --cluster"),
        (("study", "run", "cassandra-tuning", "--cluster", "cluster.toml"), "url: study cassandra-tuning measures"),
        (("study", "run", "cassandra-tuning", "--cluster", "cluster.toml", "--target", "x"), "leave out --target, or --cluster"),
        (("tune", "--target", "redis://h:1", "--goal", "load"), "or say with --cluster FILE how"),
    ],
)
def test_what_does_not_go_together_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, HEAD + WAY + NODE)
    ended = cli(*command, "--no-open")
    assert (ended.exit_code, ended.out) == (2, "")
    assert expected in " ".join(ended.err.split())


# Words


def test_places_are_words_and_secrets_stay_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTED_SECRET", "s3 cret")
    words = checked_words(["cli", "-a", "{env:TESTED_SECRET}", "-p", "{port}", "--password", "hunter2", "--token=t0", "{value}"])
    found = filled(words, {"port": "7", "value": "a b"})
    assert found.run == ("cli", "-a", "s3 cret", "-p", "7", "--password", "hunter2", "--token=t0", "a b")
    assert found.text == "cli -a '{env:TESTED_SECRET}' -p 7 --password … '--token=…' 'a b'"
    assert output_without_secrets("wrong: s3 cret, hunter2", found) == "wrong: …, …"


def test_user_info_of_urls_is_not_shown() -> None:
    assert filled(["curl", "http://me:pw@host/x"], {}).text == "curl 'http://…@host/x'"


# Lines of configuration files


@pytest.mark.parametrize(
    ("way", "before", "after"),
    [
        ({"line": "{name} {value}"}, "hz 10\n# hz 11\nhz-2 3\n", "hz 50\n# hz 11\nhz-2 3\n"),
        ({"line": "{name} = '{value}'"}, "a = 1\n  hz=10\nhz = '12'\nhz2 = 4\n", "a = 1\nhz = '50'\nhz2 = 4\n"),
        ({"line": "{name}={value}"}, "a=1", "a=1\nhz=50\n"),
        ({"names": ["hz"], "line": "-Xmx{value}"}, "-Xms1g\n-Xmx2g\n", "-Xms1g\n-Xmx50\n"),
        (
            {"format": "yaml"},
            "a: 1\nhz:\n  x: 2\n\n  # of x\n  - 3\n# of b\nb:\n  hz: 4\n",
            "a: 1\nhz: 50\n# of b\nb:\n  hz: 4\n",
        ),
        ({"format": "yaml"}, "hz:\n- 3\nb: 1\n", "hz: 50\nb: 1\n"),
    ],
)
def test_a_parameter_takes_the_place_of_its_line(way: dict[str, object], before: str, after: str) -> None:
    assert with_parameters(before, {"hz": "50"}, ParameterWay(file="/f", **way)) == after


# Reaching nodes


def fake_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named ssh that notes its words, and has a shell carry out the last, as sshd would."""
    noted = tmp_path / "noted.json"
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport json, subprocess, sys\njson.dump(sys.argv[1:], open({str(noted)!r}, 'w'))\n"
        "sys.exit(subprocess.run(['/bin/sh', '-c', sys.argv[-1]]).returncode)\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return noted


def test_ssh_gets_each_word_quoted_for_the_other_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = fake_ssh(tmp_path, monkeypatch)
    node = Node(ClusterNode(address="h:1", ssh="me@h"), ["-i", "key"], 20.0)
    words = ["printf", "%s\n", "a b", "$HOME", "`id`", "'; touch x; '", "{host}"]
    printed = node.require(node.filled(words))
    assert printed.decode().splitlines() == ["a b", "$HOME", "`id`", "'; touch x; '", "h"]
    given = json.loads(noted.read_text(encoding="utf-8"))
    assert given[:-1] == ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-i", "key", "me@h", "--"]
    assert shlex.split(given[-1]) == [*words[:-1], "h"]


def test_an_error_names_node_command_and_output(tmp_path: Path) -> None:
    node = Node(ClusterNode(address="h:1", local=True), [], 0.5)
    with pytest.raises(FailedError, match=r"node h:1 \(local\): `ls /no-such-file` ended with 2: ls: .*No such file"):
        node.require(node.filled(["ls", "/no-such-file"]))
    with pytest.raises(FailedError, match=r"node h:1 \(local\): `sleep 9` did not end within 0.5 s"):
        node.require(node.filled(["sleep", "9"]))
    with pytest.raises(FailedError, match=r"`no-such-program` cannot be run: "):
        node.require(node.filled(["no-such-program"]))
    with pytest.raises(FailedError, match=r"node h:1 .* is not ready: .*`false` ended with 1: it printed nothing"):
        node.wait_until_ready(["false"], 0.0, None)


# What was there before


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SENSORBENCH_LAB", str(tmp_path / "lab"))
    return tmp_path / "lab" / "user-clusters"


def test_nodes_that_another_process_uses_are_refused(state: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        SavedFile(["h:1", "h:2"]).take(Path("a.toml"))
        saved = SavedFile(["h:1", "h:2"])
        kept = SavedCluster.model_validate_json(saved.path.read_text(encoding="utf-8"))
        saved.write(kept.model_copy(update={"owner": ProcessId.of(other.pid)}))
        with pytest.raises(UsageError, match=f"process {other.pid} is using h:2 "):
            SavedFile(["h:2"]).take(Path("b.toml"))
    finally:
        other.kill()
        other.wait()
    with pytest.raises(UsageError, match=r"h:2 was set by a process that was killed, with .*a\.toml"):
        SavedFile(["h:2"]).take(Path("b.toml"))
    assert SavedFile(["h:2", "h:1"]).take(Path("a.toml")).owner == ProcessId.this()
    assert {path.stat().st_mode & 0o777 for path in state.glob("*.json")} == {0o600}


# A server of somebody's


class Own(SimpleNamespace):
    """A Redis that somebody runs by a configuration file and restarts by a command, with data of theirs in it."""

    def ask(self, *words: str) -> str:
        """What it answers."""
        with socket.create_connection((self.host, self.port), timeout=5.0) as connection:
            for request in (("AUTH", "sensorbench", self.password), words):
                parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in request)
                connection.sendall(f"*{len(request)}\r\n{parts}".encode())
                answer = connection.recv(4096).decode()
        return answer.splitlines()[-1]


@pytest.fixture(scope="module")
def own(lab_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    """It writes its data to disk when it ends, so that they must still be there afterwards."""
    del lab_home
    instance = lab.up(lab.ServerSpec("redis", name="somebodys", settings={"save": "3600 1"}))
    node = instance.nodes[0]
    software = next(software_folder().glob(f"redis-{instance.version}"))
    variables = [f"{key}={value}" for key, value in libraries(software).items()]
    conf = instance.node_folder(node) / "redis.conf"
    restart = [
        "env",
        *variables,
        sys.executable,
        str(RESTART),
        "{host}",
        "{port}",
        str(conf.parent),
        str(program(software, "redis-server")),
        str(conf),
    ]
    found = Own(
        host=node.host,
        port=node.port,
        password=instance.password(),
        conf=conf,
        file=tmp_path_factory.mktemp("own") / "cluster.toml",
        url=lab.url_of(instance),
    )
    found.toml = (
        f'url = "{found.url}"\nback_within = "15s"\n[commands]\nrestart = {json.dumps(restart)}\ndrop_caches = ["true"]\n'
        f'[[parameters]]\nfile = "{conf}"\nline = "{{name}} {{value}}"\n[[nodes]]\naddress = "{node.host}:{node.port}"\n'
    )
    found.file.write_text(found.toml + "local = true\n", encoding="utf-8")
    found.ask("SET", "theirs", "precious")
    yield found
    for process in psutil.process_iter(["cmdline"]):
        if any(f"{node.host}:{node.port}" in word for word in process.info["cmdline"] or []):
            process.kill()
    lab.down("somebodys")


SPACE = 'database = "redis"\nfile = "f"\nline = "{key} {value}"\n[settings.hz]\nabout = "a"\nvalues = [10, 50]\n'


@pytest.fixture
def tuned(own: Own, tmp_path: Path) -> Callable[..., list[str]]:
    """The words of a short search there."""

    def words(*more: str, space: str = SPACE, file: Path = own.file) -> list[str]:
        (tmp_path / "space.toml").write_text(space, encoding="utf-8")
        given = ["--space", str(tmp_path / "space.toml"), "--goal", "p50@200", "--records", "50", "--budget-runs", "3"]
        short = ["--step-duration", "300ms", "--warmup", "0", "--ramp", "0", "--no-open", "--json"]
        return ["tune", "--cluster", str(file), *given, *short, "--out", str(tmp_path / "out"), *more]

    return words


def server_pid(own: Own) -> int | None:
    found = (
        entry for entry in psutil.net_connections("inet") if entry.laddr == (own.host, own.port) and entry.status == "LISTEN"
    )
    return next((entry.pid for entry in found), None)


def assert_as_it_was(own: Own, before: bytes) -> None:
    """The file, the setting in the running server, the data of theirs, and nothing of ours."""
    assert own.conf.read_bytes() == before
    assert own.ask("CONFIG", "GET", "hz") == "10"
    assert own.ask("GET", "theirs") == "precious"
    assert own.ask("DBSIZE") == ":1"
    assert not list((Path(os.environ["SENSORBENCH_LAB"]) / "user-clusters").glob("*.json"))


def test_a_search_on_a_server_of_somebodys_leaves_it_as_it_was(
    cli: Cli, own: Own, tuned: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ssh, whose real program needs a server that CI does not have; what it is given is carried out by a shell."""
    fake_ssh(tmp_path, monkeypatch)
    before, pid = own.conf.read_bytes(), server_pid(own)
    file = tmp_path / "cluster.toml"
    file.write_text(own.toml + 'ssh = "admin@node"\n', encoding="utf-8")
    planned = cli(*tuned("--dry-run", file=file))
    assert planned.exit_code == 0, planned.err
    commands = planned.json["commands"]
    assert any("tee -- " in command and "hz 10" in command for command in commands)
    assert commands[-1].startswith("at the end: ssh -o BatchMode=yes")
    assert server_pid(own) == pid
    assert not (tmp_path / "out").exists()

    ended = cli(*tuned(file=file))
    assert ended.exit_code == 0, ended.err
    assert ended.json["result"]["cluster"] == [f"{own.host}:{own.port}"]
    assert {trial["outcome"] for trial in ended.json["result"]["trials"]} <= {"measured", "stopped"}
    assert server_pid(own) != pid
    assert_as_it_was(own, before)
    for path in (tmp_path / "out").rglob("*.json"):
        assert own.password not in path.read_text(encoding="utf-8")
    run = json.loads(next((tmp_path / "out" / "trials" / "002").glob("manifest.json")).read_text(encoding="utf-8"))
    assert run["environment"]["servers"]["cluster.toml hz=50"]["settings"] == {"hz": "50"}


def test_what_is_in_our_namespace_and_not_ours_stays(cli: Cli, own: Own, tuned: Callable[..., list[str]]) -> None:
    before, pid = own.conf.read_bytes(), server_pid(own)
    own.ask("SET", "sensorbench:usertable:1", "theirs, too")
    ended = cli(*tuned())
    assert ended.exit_code == 2, ended.err
    assert own.ask("GET", "sensorbench:usertable:1") == "theirs, too"
    assert server_pid(own) == pid
    own.ask("DEL", "sensorbench:usertable:1")
    assert_as_it_was(own, before)


def test_a_node_that_does_not_come_back_is_named_and_put_back(cli: Cli, own: Own, tuned: Callable[..., list[str]]) -> None:
    before = own.conf.read_bytes()
    own.file.write_text((own.toml + "local = true\n").replace("15s", "2s"), encoding="utf-8")
    space = SPACE.replace("values = [10, 50]", 'values = ["nonsense", "rubbish"]')
    ended = cli(*tuned(space=space))
    own.file.write_text(own.toml + "local = true\n", encoding="utf-8")
    assert ended.exit_code == 0, ended.err
    failed = next(trial for trial in ended.json["result"]["trials"] if trial["outcome"] == "failed")
    assert f"node {own.host}:{own.port} (local) did not come back within 2 s after `env " in failed["reason"]
    assert f"nothing answers at {own.host}:{own.port}" in failed["reason"]
    assert_as_it_was(own, before)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_who_is_interrupted_puts_back_and_who_is_killed_has_the_next_do_it(
    own: Own, tuned: Callable[..., list[str]], sent: signal.Signals
) -> None:
    before = own.conf.read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-m", "sensorbench", *tuned("--budget-runs", "40")], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    give_up_s = time.monotonic() + 300.0
    while b"hz 50" not in own.conf.read_bytes() and process.poll() is None and time.monotonic() < give_up_s:
        time.sleep(0.02)
    assert b"hz 50" in own.conf.read_bytes()
    process.send_signal(sent)
    process.communicate()
    if sent == signal.SIGKILL:
        wait_until_up(own)
        assert own.conf.read_bytes() != before
        with UserCluster.load(own.file).taken(quiet()):
            assert own.conf.read_bytes() == before
    else:
        assert process.returncode == 130
    assert_as_it_was(own, before)


def test_what_somebody_changed_meanwhile_stays(own: Own) -> None:
    before = own.conf.read_bytes()
    cluster = UserCluster.load(own.file)

    def change_meanwhile() -> None:
        with cluster.taken(quiet()):
            cluster.configure({"hz": "50"})
            own.conf.write_bytes(own.conf.read_bytes() + b"# mine\n")

    with pytest.raises(ClusterLostError, match=f"somebody else has changed {own.conf} meanwhile"):
        change_meanwhile()
    assert b"hz 50\n# mine" in own.conf.read_bytes()
    own.conf.write_bytes(before)
    with cluster.taken(quiet()):
        assert own.conf.read_bytes() == before
    assert_as_it_was(own, before)


def test_commands_that_set_a_running_server_put_back_its_values(own: Own, tmp_path: Path) -> None:
    before = own.conf.read_bytes()
    client = tmp_path / "client.py"
    client.write_text(
        "import os, socket, sys\nc = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)\n"
        "for words in (['AUTH', 'sensorbench', os.environ['OWN_PASSWORD']], sys.argv[3:]):\n"
        "    c.sendall((f'*{len(words)}\\r\\n' + ''.join(f'${len(w)}\\r\\n{w}\\r\\n' for w in words)).encode())\n"
        "    answer = c.recv(4096).decode()\nprint(answer)\nsys.exit(answer.startswith('-'))\n",
        encoding="utf-8",
    )
    ask = ["env", f"OWN_PASSWORD={own.password}", sys.executable, str(client), "{host}", "{port}", "CONFIG"]
    ways = f"[[parameters]]\nset = {json.dumps([*ask, 'SET', '{name}', '{value}'])}\nget = {json.dumps([*ask, 'GET', '{name}'])}\nafter_restart = true\n"
    file = tmp_path / "cluster.toml"
    file.write_text(own.toml.replace("[[parameters]]", ways + "[[parameters]]") + "local = true\n", encoding="utf-8")
    cluster = UserCluster.load(file)
    with cluster.taken(quiet()):
        cluster.configure({"hz": "50"})
        assert own.ask("CONFIG", "GET", "hz") == "50"
        cluster.restart()
        assert own.ask("CONFIG", "GET", "hz") == "50"
        cluster.configure({"maxclients": "500"})
        assert own.ask("CONFIG", "GET", "hz") == "10"
        with pytest.raises(FailedError, match="CONFIG SET hz nonsense` ended with 1: -ERR"):
            cluster.configure({"hz": "nonsense"})
    assert_as_it_was(own, before)


def wait_until_up(own: Own) -> None:
    """The command that restarts it outlives who was killed."""
    give_up_s = time.monotonic() + 120.0
    while server_pid(own) is None and time.monotonic() < give_up_s:
        time.sleep(0.05)
    time.sleep(0.2)


def quiet() -> ProgressReporter:
    return ProgressReporter(quiet=True)


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "cluster.toml"
    file.write_text(text, encoding="utf-8")
    return file
