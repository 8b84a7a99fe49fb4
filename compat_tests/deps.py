"""Brings what the compatibility tests run but do not build: jars, kcat, graphviz, kafka-python 2, Python 3.14,
a Kerberos KDC, Chromium, pyright, promtool, Graphite's carbon.

    python compat_tests/deps.py            # all of it; a second run does nothing
    python compat_tests/deps.py jars kcat  # some of it
    python compat_tests/deps.py clients    # what is brought only if named: clients of Go and Node, for the wide tests
    python compat_tests/deps.py field      # the same: Debezium, Flink, Storm and so on, for `make field`, `make compat`

Jars go to `.cache/jvm/<name>/`, one directory per `compat_tests/jvm/pom-<name>.xml` (those of `field` are in
`compat_tests/jvm/field/`), with a stamp keyed by the pom, so an edited pom fetches again; clients of Go and Node go to
`.cache/go/` and `.cache/node/` in the same way.
`KPYBROKER_KAFKA_LIBS` names a directory of Kafka 3.9.1 jars to use instead.
Standard library only: it runs before anything is installed. It does not install Java, Maven, Go or Node.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
POMS = ROOT / "compat_tests" / "jvm"
POSTGRESQL = Path("/usr/lib/postgresql")
"""Where Debian has PostgreSQL's programs, one directory per version."""
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
PYTHON_JAR = "org.bytedeco:cpython:3.14.3-1.5.13:jar:linux-x86_64"
"""A whole CPython, which JavaCPP embeds: newer than what distributions have, and it is where the jars are."""
GO_CLIENTS = ROOT / "compat_tests" / "security" / "clients" / "go"
NODE_CLIENTS = GO_CLIENTS.with_name("node")
GO_MEMBERS = ROOT / "compat_tests" / "workers" / "go_members"
GO_TRANSACTIONAL = GO_MEMBERS.with_name("go_transactional")
REGISTRY_CLIENTS = ROOT / "compat_tests" / "registry" / "clients"
"""Clients of a schema registry: programs of Go and of Node, and Python's, which has a directory of its own."""
REGISTRY_PYTHON = ("python-schema-registry-client==2.6.1",)
OLD_KAFKA_PYTHON = "2.2.15"
AXE = "axe-core@4.14.1"
"""What looks for barriers in the console's pages."""
PYRIGHT = "pyright@1.1.414"
"""A checker of types that is not mypy; editors have it."""
KERBEROS = (
    "krb5-kdc",
    "krb5-admin-server",
    "krb5-user",
    "libkrb5-dev",
    "libsasl2-modules-gssapi-mit",
    "gcc",
    "python3-dev",
)
TRIES_MAX = 3


class DependencyError(Exception):
    """Something could not be brought; the message says what to do."""


brings_clients = True
"""Whether the program that runs may use what `clients` brings: a test that is not wide may not."""


def _of_clients(*place: str) -> Path:
    if not brings_clients:
        raise DependencyError(f"{place[-1]} is brought for wide tests alone: mark this one `wide`")
    return CACHE.joinpath(*place)


def jars_dir(name: str) -> Path:
    """Where the jars of `name` are (`kafka-3.9.1`, `kafka-4.3.1`, `spark-4.0.0`)."""
    override = os.environ.get("KPYBROKER_KAFKA_LIBS")
    return Path(override) if override and name == "kafka-3.9.1" else CACHE / "jvm" / name


def old_kafka_python_dir() -> Path:
    return CACHE / "py" / f"kafka-python-{OLD_KAFKA_PYTHON}"


def go_clients() -> Path:
    """The program that `clients` builds."""
    return _of_clients("go", "clients", "go_clients")


def go_members() -> Path:
    """The program of group members that `clients` builds."""
    return _of_clients("go", "members", "go_members")


def go_transactional() -> Path:
    """The transactional producer that `clients` builds."""
    return _of_clients("go", "transactional", "go_transactional")


def node_modules() -> Path:
    """Where `clients` puts Node's packages."""
    return _of_clients("node", "clients", "node_modules")


def go_registry() -> Path:
    """The program of registry clients that `clients` builds."""
    return _of_clients("go", "registry", "go_registry")


def node_registry_modules() -> Path:
    """Where `clients` puts Node's client of a registry."""
    return _of_clients("node", "registry", "node_modules")


def python_registry_client() -> Path:
    """Where `clients` puts Python's client of a registry that is not Confluent's."""
    return _of_clients("py", "registry")


def promtool() -> Path:
    """What checks Prometheus' rules: the system's, or else the one that `promtool` fetches."""
    found = shutil.which("promtool")
    return Path(found) if found else CACHE / "deb" / "promtool" / "promtool"


def axe() -> Path:
    """The one file of axe-core that the tests of the console load."""
    return CACHE / "npm" / "axe" / "package" / "axe.min.js"


def pyright() -> Path:
    """The program of pyright, for Node."""
    return CACHE / "npm" / "pyright" / "package" / "index.js"


def _run(command: list[str], cwd: Path | None = None) -> None:
    """Run `command` quietly; registries stumble, so a failure is tried again before its output is shown."""
    for _ in range(TRIES_MAX):
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0:
            return
    raise DependencyError(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}")


def _once(target: Path, key: str, fill: Callable[[Path], None]) -> None:
    """Fill `target` unless its stamp says that it holds `key` already; never leave it half full."""
    stamp = target / ".stamp"
    if stamp.is_file() and stamp.read_text() == key:
        return
    fresh = target.with_name(target.name + f".{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    fill(fresh)
    (fresh / ".stamp").write_text(key)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    print(f"test-deps: {target.relative_to(ROOT)}")


def fetch_jars() -> None:
    _fetch_jars_of(POMS)


def fetch_debezium() -> None:
    """What `make demo-changes` runs."""
    _fetch_jars_of(POMS / "field", "debezium-*")


def _fetch_jars_of(poms: Path, names: str = "*") -> None:
    if shutil.which("mvn") is None:
        raise DependencyError("mvn is missing: install Maven and Java 17 (apt-get install maven openjdk-17-jdk)")
    for pom in sorted(poms.glob(f"pom-{names}.xml")):
        name = pom.stem.removeprefix("pom-")
        if os.environ.get("KPYBROKER_KAFKA_LIBS") and name == "kafka-3.9.1":
            continue
        key = hashlib.sha256(pom.read_bytes()).hexdigest()
        maven = ["mvn", "-q", "-B", "-ntp", "-f", str(pom), COPY_GOAL, "-DincludeScope=runtime"]
        _once(CACHE / "jvm" / name, key, lambda out: _run([*maven, f"-DoutputDirectory={out}"]))


def fetch_kcat() -> None:
    """librdkafka's command line, from the system's packages."""
    _package("kcat", "kcat")


def fetch_graphviz() -> None:
    """`dot`, which draws the diagrams of the docs."""
    _package("dot", "graphviz")


def fetch_debootstrap() -> None:
    """What `make deploy-test` makes a root file system with."""
    _package("debootstrap", "debootstrap")


def postgres_programs() -> Path | None:
    """Where `initdb` and `postgres` are, of the newest version that is here; None where there is none."""
    found = [program.parent for program in POSTGRESQL.glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    if found:
        return max(found, key=lambda directory: int(directory.parent.name))
    return Path(on_path).resolve().parent if on_path else None


def fetch_field() -> None:
    """Jars of Flink, Storm and Debezium, and PostgreSQL."""
    _fetch_jars_of(POMS / "field")
    fetch_postgresql()


def fetch_postgresql() -> None:
    """PostgreSQL of the system. Tests start servers of their own."""
    if postgres_programs() is None:
        _package("initdb", "postgresql")


def fetch_carbon() -> None:
    """Graphite's server, from the system's packages. It is not started by the system here."""
    _package("carbon-cache", "graphite-carbon")


def fetch_kerberos() -> None:
    """A KDC, what kcat and Python need to be its clients, and the binding for Python, which is built here."""
    _package("krb5kdc", *KERBEROS)
    if importlib.util.find_spec("gssapi") is None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--root-user-action=ignore"]
        _run([*pip, "gssapi>=1.8"])


def fetch_browser() -> None:
    """Debian's Chromium, which Playwright drives, and axe-core."""
    _package("chromium", "chromium", "fonts-dejavu-core")
    _package("npm", "npm")
    _once(axe().parent.parent, AXE, _unpack_axe)


def fetch_pyright() -> None:
    """Node's package as it is: it needs no other."""
    _package("npm", "npm")
    _once(pyright().parent.parent, PYRIGHT, _unpack_pyright)


def fetch_promtool() -> None:
    """Debian's promtool, out of its package: to install that would start a Prometheus."""
    target = promtool()
    if target.is_file():
        return
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise DependencyError("promtool is missing: install Prometheus, or only its promtool on the PATH")
    _once(target.parent, "prometheus", _unpack_promtool)


def _unpack_promtool(out: Path) -> None:
    if os.geteuid() == 0:
        _run(["apt-get", "update", "-qq"])
    _run(["apt-get", "download", "-qq", "prometheus"], cwd=out)
    (package,) = out.glob("*.deb")
    with tempfile.TemporaryDirectory() as unpacked:
        _run(["dpkg-deb", "-x", str(package), unpacked])
        shutil.copy(Path(unpacked) / "usr" / "bin" / "promtool", out)
    package.unlink()


def _unpack_pyright(out: Path) -> None:
    archive = _npm_archive(out, PYRIGHT)
    with tarfile.open(archive) as packed:
        packed.extractall(out)
    archive.unlink()


def _npm_archive(out: Path, package: str) -> Path:
    _run(["npm", "pack", "--silent", package], cwd=out)
    (archive,) = out.glob("*.tgz")
    return archive


def _unpack_axe(out: Path) -> None:
    archive = _npm_archive(out, AXE)
    with tarfile.open(archive) as packed:
        file = packed.extractfile("package/axe.min.js")
        assert file is not None
        (out / "package").mkdir()
        (out / "package" / "axe.min.js").write_bytes(file.read())
    archive.unlink()


def fetch_clients() -> None:
    """The clients of Go, built, and the packages of Node's: what the folders `clients` and members of groups need."""
    for command, what in (("go", "Go 1.26 or newer"), ("npm", "Node 20 or newer, with npm")):
        if shutil.which(command) is None:
            raise DependencyError(f"{command} is missing: install {what}")
    _build_go(GO_CLIENTS, go_clients())
    _build_go(GO_MEMBERS, go_members())
    _build_go(GO_TRANSACTIONAL, go_transactional())
    _build_go(REGISTRY_CLIENTS / "go", go_registry())
    _install_node_packages(NODE_CLIENTS, node_modules().parent)
    _install_node_packages(REGISTRY_CLIENTS / "node", node_registry_modules().parent)
    target = python_registry_client()
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--root-user-action=ignore"]
    _once(target, " ".join(REGISTRY_PYTHON), lambda out: _run([*pip, "--target", str(out), *REGISTRY_PYTHON]))


def _build_go(sources: Path, program: Path) -> None:
    build = ["go", "build", "-C", str(sources), "-o"]
    content = b"".join(path.read_bytes() for path in sorted(sources.iterdir()))
    _once(program.parent, hashlib.sha256(content).hexdigest(), lambda out: _run([*build, str(out / program.name), "."]))


def _install_node_packages(sources: Path, target: Path) -> None:
    def install(out: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(sources / name, out)
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=out)

    lock = (sources / "package-lock.json").read_bytes()
    _once(target, hashlib.sha256(lock).hexdigest(), install)


def _package(command: str, *packages: str) -> None:
    if shutil.which(command, path=f"{os.environ['PATH']}:/usr/sbin") is not None:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        names = " ".join(packages)
        raise DependencyError(f"{command} is missing and only root can install it: sudo apt-get install {names}")
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    _run(["apt-get", "update", "-qq"])
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages])
    print(f"test-deps: {' '.join(packages)}")


def fetch_old_kafka_python() -> None:
    requirement = f"kafka-python=={OLD_KAFKA_PYTHON}"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--root-user-action=ignore"]
    _once(old_kafka_python_dir(), requirement, lambda out: _run([*pip, "--no-deps", "--target", str(out), requirement]))


def fetch_python() -> None:
    """CPython 3.14 for the tests of the wheel, where the machine has none. Only for Linux on x86-64."""
    sys.path.insert(0, str(ROOT))
    from compat_tests.packaging import pythons

    if pythons.find("3.14") is not None:
        return
    if (platform.system(), platform.machine()) != ("Linux", "x86_64") or shutil.which("mvn") is None:
        print("test-deps: no Python 3.14 here, and none can be fetched: the wheel is not tested on it")
        return
    _once(pythons.FETCHED / "3.14", PYTHON_JAR, _unpack_python)


def _unpack_python(out: Path) -> None:
    goal = COPY_GOAL.removesuffix("-dependencies")
    _run(["mvn", "-q", "-B", "-ntp", goal, f"-Dartifact={PYTHON_JAR}", f"-DoutputDirectory={out}"])
    (jar,) = out.glob("*.jar")
    top = "org/bytedeco/cpython/linux-x86_64/"
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            path = name.removeprefix(top)
            if not path.startswith(("bin/python3.14", "lib/python3.14/", "libffi", "libpython")) or name.endswith("/"):
                continue
            if not path.startswith("lib/python3.14/test/"):
                (out / path).parent.mkdir(parents=True, exist_ok=True)
                (out / path).write_bytes(archive.read(name))
    (out / "bin" / "python3.14").chmod(0o755)
    jar.unlink()


STEPS = {
    "jars": fetch_jars,
    "kcat": fetch_kcat,
    "graphviz": fetch_graphviz,
    "kafka-python": fetch_old_kafka_python,
    "python": fetch_python,
    "kerberos": fetch_kerberos,
    "browser": fetch_browser,
    "pyright": fetch_pyright,
    "promtool": fetch_promtool,
    "carbon": fetch_carbon,
    "postgresql": fetch_postgresql,
}

ON_REQUEST = {
    "debootstrap": fetch_debootstrap,
    "clients": fetch_clients,
    "field": fetch_field,
    "debezium": fetch_debezium,
}
"""Brought only if named."""


def main(names: list[str]) -> int:
    known = STEPS | ON_REQUEST
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"test-deps: unknown {unknown}; one of {list(known)}", file=sys.stderr)
        return 2
    try:
        for name in names or STEPS:
            known[name]()
    except DependencyError as error:
        print(f"test-deps: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
