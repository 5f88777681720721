# SPDX-License-Identifier: BSD-2-Clause
"""A Debian kernel in a folder: image, headers and NTB sources of one ABI, fetched and unpacked, not installed.

Everything is kept in a cache: $VIADUCT_VM_CACHE, else viaduct-vm in $XDG_CACHE_HOME or ~/.cache.  A kernel that was
fetched before is used without asking the network.
"""
import contextlib
import fcntl
import gzip
import lzma
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
NTB_SOURCES = ("drivers/ntb/core.c", "drivers/ntb/ntb_transport.c", "drivers/ntb/test/ntb_tool.c",
               "drivers/ntb/test/ntb_pingpong.c", "drivers/ntb/test/ntb_perf.c", "drivers/net/ntb_netdev.c",
               "drivers/ntb/hw/epf/ntb_hw_epf.c", "tools/testing/selftests/ntb/ntb_test.sh")
# backports: the newest for the release; oldest: the first of the release's own line that the
# package sources still have.
SERIES = ("stable", "backports", "oldest")


class Missing(Exception):
    """Something is not here: the reason why tests are skipped."""


def cache_dir():
    base = os.environ.get("VIADUCT_VM_CACHE")
    if not base:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        base = os.path.join(base, "viaduct-vm")
    path = Path(base).resolve()
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(path):
    """Lets one process at a time fill a folder of the cache."""
    with open(f"{path}.lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def call(args, **options):
    """Returns the output of a command; if it fails raises Missing with its last lines as the reason."""
    try:
        done = subprocess.run([str(a) for a in args], check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
    except FileNotFoundError as error:
        raise Missing(f"{args[0]} is not installed") from error
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise Missing(f"{args[0]} failed: {'; '.join(lines[-2:])}")
    return done.stdout


class Apt:
    """apt with lists and a state of its own, so it needs neither root nor recent lists of the machine."""

    def __init__(self, path, sources=None):
        """sources: the lines of sources.list, if not those of the machine."""
        self.path = path
        for name in ("state/lists/partial", "cache/archives/partial"):
            (path / name).mkdir(parents=True, exist_ok=True)
        (path / "state/status").touch()
        config = ['APT::Architecture "amd64";', 'APT::Architectures { "amd64"; };', 'APT::Sandbox::User "";',
                  'Acquire::Languages "none";', 'Debug::NoLocking "true";', f'Dir::State "{path}/state";',
                  f'Dir::State::status "{path}/state/status";', f'Dir::Cache "{path}/cache";']
        if sources:
            (path / "sources.list").write_text(sources, encoding="utf-8")
            config += [f'Dir::Etc::sourcelist "{path}/sources.list";', 'Dir::Etc::sourceparts "-";']
        (path / "apt.conf").write_text("\n".join(config) + "\n", encoding="utf-8")
        self.env = dict(os.environ, APT_CONFIG=str(path / "apt.conf"), LC_ALL="C.UTF-8")

    def update(self):
        # One of the machine's sources may fail; that does not matter if the packages are found.
        subprocess.run(["apt-get", "-q", "update"], env=self.env, check=False, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def show(self, packages):
        """The records of all versions in the sources."""
        return call(["apt-cache", "show"] + packages, env=self.env)

    def field(self, package, name):
        text = call(["apt-cache", "show", "--no-all-versions", package], env=self.env)
        found = re.search(rf"^{name}: (.*)$", text, re.MULTILINE)
        return found.group(1) if found else ""

    def versions(self, packages):
        """(package, version) of all that the sources have."""
        text = call(["apt-cache", "madison"] + list(packages), env=self.env)
        return [tuple(word.strip() for word in line.split("|")[:2]) for line in text.splitlines()]

    def named(self, pattern):
        return call(["apt-cache", "search", "--names-only", pattern], env=self.env).split("\n")

    def download(self, packages, where):
        call(["apt-get", "-q", "download"] + packages, env=self.env, cwd=where)


def sources_of(series):
    """The lines of sources.list that the machine's own package sources may lack, or nothing."""
    if series != "backports":
        return None
    return "".join(f"deb [signed-by={KEYRING}] http://deb.debian.org/{name} main\n"
                   for name in (f"debian {codename()}-backports", f"debian-security {codename()}-security"))


def codename():
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"^VERSION_CODENAME=(\w+)$", text, re.MULTILINE)
    if not found:
        raise Missing("/etc/os-release names no release of Debian")
    return found.group(1)


def newest(apt):
    """(release, version) of the newest kernel of the release's own line."""
    depends = apt.field("linux-image-amd64", "Depends")
    found = re.match(r"linux-image-(\S+?)(?: \(= (\S+)\))?(?:,|$)", depends)
    if not found:
        raise Missing("the package sources have no linux-image-amd64")
    release = found.group(1)
    return release, found.group(2) or apt.field(f"linux-image-{release}", "Version")


def newest_of_all(apt):
    """
    (release, version) of the newest kernel of any line.  The kernel of the backports is a version
    of linux-image-amd64; a newer one of the same line may be in the security archive, in a package
    whose name contains the line.
    """
    lines = [text.split()[0] for text in apt.named(r"^linux-image-[0-9]+\.[0-9]+-amd64$") if text]
    found = re.findall(r"^Depends: linux-image-(\S+) \(= (\S+)\)", apt.show(["linux-image-amd64"] + lines), re.MULTILINE)
    if not found:
        raise Missing("the package sources have no linux-image-amd64")
    return max(found, key=lambda one: [int(number) for number in re.findall(r"[0-9]+", one[1])])


def oldest(apt):
    """
    (release, version) of the oldest kernel of the newest one's line.  The number of its binary
    interface grows.  The sources keep images longer than the headers from which modules for them
    are built.
    """
    line = newest(apt)[0].split("-")[0]
    pattern = rf"^linux-image-{re.escape(line)}-[0-9]+-amd64$"
    names = [text.split()[0] for text in apt.named(pattern) if text]
    have = {version for _, version in apt.versions([source_package(line)])}
    found = [(int(name.split("-")[-2]), name.removeprefix("linux-image-"), version)
             for name, version in apt.versions(names) if version in have]
    if not found:
        raise Missing(f"the package sources have no kernel {line} with its sources")
    return min(found)[1:]


PICK = {"stable": newest, "backports": newest_of_all, "oldest": oldest}


def package_names(apt, pick=newest):
    """(release, packages) of a kernel, with versions, except for packages that the headers need in any version."""
    release, version = pick(apt)
    names = [f"linux-image-{release}={version}", f"linux-headers-{release}={version}"]
    for name, of_version in re.findall(r"(linux-(?:headers|kbuild)-[\w.+-]+)(?: \(= (\S+)\))?",
                                       apt.field(f"linux-headers-{release}={version}", "Depends")):
        names.append(f"{name}={of_version}" if of_version else name)
    return release, names + [f"{source_package(release)}={version}"]


def elf_of(image):
    """The uncompressed kernel inside a bzImage: it is booted through the PVH entry, without unpacking itself."""
    for magic, unpack in ((b"\xfd7zXZ\0", lambda data: lzma.LZMADecompressor().decompress(data)),
                          (b"\x28\xb5\x2f\xfd", unzstd), (b"\x1f\x8b\x08", gzip.decompress)):
        at = image.find(magic)
        while at >= 0:
            with contextlib.suppress(lzma.LZMAError, OSError, EOFError, ValueError):
                elf = unpack(image[at:])
                if elf.startswith(b"\x7fELF"):
                    return elf
            at = image.find(magic, at + 1)
    raise Missing("no kernel was found inside the image")


def unzstd(data):
    try:
        # The bytes after the stream are not part of it; zstd complains of them after it has written everything.
        return subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False).stdout
    except FileNotFoundError as error:
        raise Missing("zstd is not installed") from error


def one(folder, pattern):
    found = sorted(folder.glob(pattern))
    if not found:
        raise Missing(f"the packages of the kernel have no {pattern}")
    return found[0]


def require_x86():
    if os.uname().machine != "x86_64":
        raise Missing(f"guests are x86-64 machines and keep its memory order, this is {os.uname().machine}")


class Kernel:
    """A kernel of the cache."""

    memory = 384  # MiB that a guest needs
    processors = 1
    patience = 1  # it takes so many times as long as a stock kernel

    def __init__(self, path):
        self.path = path
        self.release = path.name

    @property
    def image(self):
        return self.path / "vmlinux"

    @property
    def headers(self):
        return self.path / "root/usr/src" / f"linux-headers-{self.release}"

    @property
    def modules(self):
        return self.path / "root/lib/modules" / self.release

    @property
    def sources(self):
        return self.path / "source"

    def complete(self):
        return (self.path / "done").exists()

    def lacks_sources(self):
        """Was it fetched when fewer sources were needed?"""
        return not all((self.sources / name).exists() for name in NTB_SOURCES)

    def version(self):
        """The version of its packages."""
        text = (self.headers / "include/generated/package.h").read_text(encoding="utf-8")
        return re.search(r'LINUX_PACKAGE_ID " Debian (\S+)"', text).group(1)

    def unpack(self, debs):
        """Fills the folder from the packages."""
        root = self.path / "root"
        root.mkdir(parents=True, exist_ok=True)
        for deb in sorted(debs.glob("*.deb")):
            if deb.name.startswith("linux-source"):
                self.unpack_sources(deb)
            else:
                call(["dpkg-deb", "-x", deb, root])
        self.image.write_bytes(elf_of(one(root, "boot/vmlinuz-*").read_bytes()))
        shutil.rmtree(root / "boot")
        # The headers name the folder into which the package would install them.
        makefile = self.headers / "Makefile"
        makefile.write_text(makefile.read_text(encoding="utf-8").replace("/usr/src/", f"{root}/usr/src/"),
                            encoding="utf-8")
        (self.path / "done").touch()

    def unpack_sources(self, deb):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as dpkg:
            with tarfile.open(fileobj=dpkg.stdout, mode="r|") as outer:
                for member in outer:
                    if member.name.endswith(".tar.xz"):
                        self.pick_sources(outer.extractfile(member))
            dpkg.stdout.close()
            dpkg.wait()

    def pick_sources(self, file):
        with tarfile.open(fileobj=file, mode="r|xz") as inner:
            for member in inner:
                name = member.name.split("/", 1)[-1]
                if name in NTB_SOURCES:
                    target = self.sources / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(inner.extractfile(member).read())
        for name in NTB_SOURCES:
            one(self.sources, name)


def source_package(release):
    return "linux-source-" + ".".join(release.split(".")[:2])


def fetch_sources(kernel, apt):
    apt.update()
    debs = kernel.path / "debs"
    shutil.rmtree(debs, ignore_errors=True)
    debs.mkdir()
    apt.download([f"{source_package(kernel.release)}={kernel.version()}"], debs)
    kernel.unpack_sources(one(debs, "*.deb"))
    shutil.rmtree(debs)


def get_kernel(series="stable", refresh=False):
    """The kernel of a series, from the cache or the network; raises Missing."""
    require_x86()
    base = cache_dir() / series
    base.mkdir(exist_ok=True)
    with locked(base):
        have = sorted((Kernel(path) for path in base.iterdir() if (path / "done").exists()),
                      key=lambda kernel: (kernel.path / "done").stat().st_mtime)
        if have and not refresh:
            if have[-1].lacks_sources():
                fetch_sources(have[-1], Apt(base / ".apt", sources_of(series)))
            return have[-1]
        apt = Apt(base / ".apt", sources_of(series))
        apt.update()
        release, packages = package_names(apt, PICK[series])
        kernel = Kernel(base / release)
        if not kernel.complete():
            shutil.rmtree(kernel.path, ignore_errors=True)
            debs = kernel.path / "debs"
            debs.mkdir(parents=True)
            print(f"# fetches {', '.join(packages)}", flush=True)
            apt.download(packages, debs)
            kernel.unpack(debs)
            shutil.rmtree(debs)
        return kernel
