"""make install and make uninstall: all in one folder of its own, with links to it where a system looks.

    PREFIX/lib/cortex-tools/            the package, what it depends on, launchers, generated files
    PREFIX/bin/cortex*                  links to the launchers
    PREFIX/share/{man,bash-completion,zsh,fish}/…   copies of the generated files

The launchers name their interpreter and start it without `site` (-S) and without regard to PYTHONPATH and the like
(-E, -s): all they need lies beside them, and reading a system's site-packages can cost more than a search.

    usage: install.py install|uninstall PREFIX [DESTDIR [EXTRAS]]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = "-sSE"


def main(action: str, prefix: str, destdir: str = "", extras: str = "") -> None:
    if not os.path.isabs(prefix):
        sys.exit(f"PREFIX must be an absolute path, not {prefix}")
    place = Path(destdir + prefix)  # DESTDIR is put before it as it is, as everywhere
    if action == "install":
        install(place, extras)
    elif action == "uninstall":
        uninstall(place)
    else:
        sys.exit(__doc__)


def install(place: Path, extras: str) -> None:
    """Build beside the installed folder and change the two at the end: what fails leaves the old one in place."""
    os.umask(0o022)  # for all to read and nobody else to write, whoever installs it
    library = place / "lib" / "cortex-tools"
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    if " " in python or len(python) > 100:
        sys.exit(f"a launcher cannot name {python}: say make install PYTHON=... with a shorter path without blanks")
    for launcher in (HERE / "bin").iterdir():
        link = place / "bin" / launcher.name
        if os.path.lexists(link) and not _is_ours(link):
            sys.exit(f"{link} is there and was not put there by make install: remove it, or choose another PREFIX")
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=".cortex-tools-") as folder:
        new = Path(folder) / "new"
        _pip("install", "--quiet", "--target", str(new), "--no-warn-script-location", f"{HERE}{extras}")
        for launcher in (new / "bin").iterdir():
            if launcher.name.startswith("cortex"):
                _, _, rest = launcher.read_text(encoding="utf-8").partition("\n")
                launcher.write_text(f"#!{python} {FLAGS}\n{rest}", encoding="utf-8")
            else:
                launcher.unlink()  # of a dependency, and nobody's business here
        uninstall(place)
        new.chmod(0o755)
        new.rename(library)
    (place / "bin").mkdir(exist_ok=True)
    for launcher in (library / "bin").iterdir():
        (place / "bin" / launcher.name).symlink_to(f"../lib/cortex-tools/bin/{launcher.name}")
    for path in _shared(library):
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library / path, target)


def uninstall(place: Path) -> None:
    """Remove what an installation put there, and nothing else; folders that others may use are left."""
    library = place / "lib" / "cortex-tools"
    if not library.exists():
        return
    for launcher in (library / "bin").iterdir():
        link = place / "bin" / launcher.name
        if _is_ours(link):
            link.unlink()
    for path in _shared(library):
        (place / path).unlink(missing_ok=True)
    shutil.rmtree(library)


def _is_ours(link: Path) -> bool:
    return link.is_symlink() and os.readlink(link) == f"../lib/cortex-tools/bin/{link.name}"


def _shared(library: Path) -> list[Path]:
    """The generated files by path below the prefix; dependencies may have brought files of their own."""
    files = (path.relative_to(library) for path in (library / "share").rglob("*") if path.is_file())
    return [path for path in files if "cortex" in path.name]


def _pip(*arguments: str) -> None:
    """Run pip: of this Python, else of a virtual environment made for it, since not every Python comes with one."""
    command = [sys.executable, "-m", "pip"]
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([*command, "--version"], capture_output=True).returncode:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            command = [f"{folder}/bin/python", "-m", "pip"]
        if subprocess.run([*command, "--disable-pip-version-check", *arguments]).returncode:
            sys.exit("nothing was installed: pip failed, see above")


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
