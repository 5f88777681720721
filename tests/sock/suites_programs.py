#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Suites of servers and clients: each returns the set of tests that failed."""
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from scene import PATIENCE, Missing, await_text, await_that, free_port, need
import sshd  # whose path scene has added


def redis(scene):
    need("redis-server", "redis-benchmark")
    port = free_port()
    scene.start(port, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", scene.folder)
    failed = set()
    for clients in (1, 50):
        done = scene.run("redis-benchmark", "-p", port, "-c", clients, "-n", 3000, "-t", "set,get,lpush,mset", "--csv")
        if done.returncode != 0 or done.stdout.count("\n") < 5:
            failed.add(f"{clients} clients")
    return failed


def memcached(scene):
    need("memcached", "socat")
    port = free_port()
    scene.start(port, "memcached", "-u", "root", "-l", "127.0.0.1", "-p", port)
    value = "x" * 100000
    asked = f"set a 0 0 {len(value)}\r\n{value}\r\nget a\r\nquit\r\n"
    done = scene.run("socat", "-t", "20", "-", f"TCP:127.0.0.1:{port}", input=asked, stdin=subprocess.PIPE)
    return set() if f"STORED\n" in done.stdout.replace("\r", "") and value in done.stdout else {"set and get"}


NGINX = """{2}worker_processes 2; daemon off; pid {0}/pid; error_log {0}/log notice;
events {{ worker_connections 200; }}
http {{ access_log off; sendfile on; client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0};
uwsgi_temp_path {0}; scgi_temp_path {0}; server {{ listen 127.0.0.1:{1}; root {0}/files; }} }}
"""


def web_files(scene):
    files = scene.folder / "files"
    files.mkdir()
    scene.folder.chmod(0o755)
    (files / "large").write_bytes(os.urandom(20 << 20))
    (files / "small").write_bytes(b"small" * 100)


def fetch(scene, port, name):
    """Fetches three files through one connection."""
    want, paths = (scene.folder / "files/large").read_bytes(), [scene.folder / f"{name}{i}" for i in range(3)]
    args = [arg for path in paths for arg in ("-o", path)]
    done = scene.run("curl", "-sS", *[f"http://127.0.0.1:{port}/large"] * 3, *args)
    failed = {f"{name} {i}" for i, path in enumerate(paths) if not path.exists() or path.read_bytes() != want}
    return failed | ({f"{name}: curl {done.stdout[-100:]}"} if done.returncode else set())


def reload_under_traffic(scene, port, server, number, log, text):
    """The old workers finish a download that takes longer than the reload; the new ones serve another one."""
    half = scene.folder / "half"
    slow = subprocess.Popen(scene.command(("curl", "-sS", "--limit-rate", "15M", "-o", half,
                                           f"http://127.0.0.1:{port}/large")), env=scene.env)
    try:
        await_that(lambda: half.exists() and half.stat().st_size > 0, "the download begins")
        server.send_signal(number)
        await_text(log, text, 2)
        failed = fetch(scene, port, "new")
    finally:
        status = slow.wait(timeout=PATIENCE)
    if status != 0 or half.read_bytes() != (scene.folder / "files/large").read_bytes():
        failed.add("the download during the reload")
    return failed


def nginx(scene):
    need("nginx", "curl")
    port, config = free_port(), scene.folder / "conf"
    web_files(scene)
    config.write_text(NGINX.format(scene.folder, port, "user root; " if os.geteuid() == 0 else ""))
    server = scene.start(port, "nginx", "-c", config)
    return fetch(scene, port, "file") | reload_under_traffic(
        scene, port, server, signal.SIGHUP, scene.folder / "log", "start worker processes")


APACHE = """ServerRoot {0}
ServerName 127.0.0.1
DefaultRuntimeDir {0}
PidFile {0}/pid
ErrorLog {0}/log
LogLevel notice
Mutex file:{0}
LoadModule mpm_{2}_module /usr/lib/apache2/modules/mod_mpm_{2}.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
Listen 127.0.0.1:{1}
DocumentRoot {0}/files
StartServers 2
"""


def apache(kind):
    def suite(scene):
        need("curl")
        server_path = shutil.which("apache2", path=f"{os.environ['PATH']}:/usr/sbin")
        if not server_path or not Path(f"/usr/lib/apache2/modules/mod_mpm_{kind}.so").exists():
            raise Missing(f"apache2 with its {kind} module is not installed")
        port, config = free_port(), scene.folder / "conf"
        web_files(scene)
        config.write_text(APACHE.format(scene.folder, port, kind))
        server = scene.start(port, server_path, "-DFOREGROUND", "-f", config)
        return fetch(scene, port, "file") | reload_under_traffic(
            scene, port, server, signal.SIGUSR1, scene.folder / "log", "resuming normal operations")
    # As root it refuses to serve, and a child that gives up root cannot use a fabric of root's.
    suite.become = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
    return suite


def load(scene):
    """Runs load generators on nginx, with and without keep-alive."""
    need("nginx", "ab", "wrk")
    port, config = free_port(), scene.folder / "conf"
    web_files(scene)
    config.write_text(NGINX.format(scene.folder, port, "user root; " if os.geteuid() == 0 else ""))
    scene.start(port, "nginx", "-c", config)
    url, failed = f"http://127.0.0.1:{port}/small", set()
    for more in ((), ("-k",)):
        done = scene.run("ab", "-q", "-n", 400, "-c", 4, *more, url)
        if done.returncode != 0 or not re.search(r"Failed requests: +0\n", done.stdout):
            failed.add(f"ab {' '.join(more)}: {done.stdout[-100:]}")
    done = scene.run("wrk", "-t", 2, "-c", 8, "-d", "1s", url)
    if done.returncode != 0 or "Socket errors" in done.stdout or "requests in" not in done.stdout:
        failed.add(f"wrk: {done.stdout[-100:]}")
    return failed


SSHD = """Port {1}
ListenAddress 127.0.0.1
HostKey {0}/host_key
PidFile {0}/pid
AuthorizedKeysFile {0}/key.pub
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
"""


def ssh(scene):
    need("ssh", "scp", "ssh-keygen")
    if lack := sshd.missing():
        raise Missing(lack)
    port, config = free_port(), scene.folder / "conf"
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scene.folder / name], check=True)
    config.write_text(SSHD.format(scene.folder, port))
    scene.start(port, *sshd.command("-D", "-e", "-f", config))
    options = ["-F", "none", "-i", scene.folder / "key", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
               "-o", f"UserKnownHostsFile={scene.folder}/known", "-o", "LogLevel=ERROR"]
    source, copy, back = (scene.folder / name for name in ("source", "copy", "back"))
    source.write_bytes(os.urandom(20 << 20))
    failed = set()
    done = scene.run("ssh", *options, "-p", port, "127.0.0.1", "echo", "hello;", "exit", 3)
    if done.returncode != 3 or done.stdout != "hello\n":
        failed.add(f"ssh: {done.returncode} {done.stdout[-200:]}")
    for name, args in (("to", (source, f"127.0.0.1:{copy}")), ("from", (f"127.0.0.1:{copy}", back))):
        done = scene.run("scp", *options, "-P", port, "-q", *args)
        if done.returncode != 0:
            failed.add(f"scp {name}: {done.stdout[-200:]}")
    if not back.exists() or back.read_bytes() != source.read_bytes():
        failed.add("scp: another content")
    return failed


def rsync(scene):
    need("rsync")
    port, config, source = free_port(), scene.folder / "conf", scene.folder / "source"
    source.mkdir()
    for i in range(20):
        (source / f"file{i}").write_bytes(os.urandom(300000 * (i % 4)))
    config.write_text(f"use chroot = no\npid file = {scene.folder}/pid\n[all]\npath = {scene.folder}\n"
                      f"read only = no\nuid = {os.geteuid()}\ngid = {os.getegid()}\n")
    scene.start(port, "rsync", "--daemon", "--no-detach", "--address=127.0.0.1", f"--port={port}", f"--config={config}")
    failed, url = set(), f"rsync://127.0.0.1:{port}/all"
    for name, args in (("from", (f"{url}/source/", scene.folder / "copy")), ("to", (f"{scene.folder}/source/", f"{url}/back"))):
        done = scene.run("rsync", "-a", *args)
        if done.returncode != 0:
            failed.add(f"{name}: {done.stdout[-200:]}")
    for name in ("copy", "back"):
        done = subprocess.run(["diff", "-r", source, scene.folder / name], capture_output=True, check=False)
        if done.returncode != 0:
            failed.add(f"{name}: another content")
    return failed


def socat(scene):
    """A server that forks for each connection; both ends half-close."""
    need("socat")
    port, sent = free_port(), os.urandom(3 << 20)
    scene.start(port, "socat", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork", "EXEC:cat")
    path, got = scene.folder / "sent", scene.folder / "got"
    path.write_bytes(sent)
    with path.open("rb") as stdin, got.open("wb") as stdout:
        done = subprocess.run(scene.command(("socat", "-t", 60, "-", f"TCP:127.0.0.1:{port}")), env=scene.env,
                              stdin=stdin, stdout=stdout, timeout=PATIENCE, check=False)
    return set() if done.returncode == 0 and got.read_bytes() == sent else {"what came back"}


def java(scene):
    """Blocking sockets and a selector, both ends in one virtual machine."""
    need("java", "javac")
    done = scene.run("java", Path(__file__).parent / "Echo.java")
    return set() if done.returncode == 0 and done.stdout.endswith("ok\n") else {done.stdout[-300:]}


def node(scene):
    need("node")
    done = scene.run("node", Path(__file__).parent / "echo.js")
    return set() if done.returncode == 0 and done.stdout.endswith("ok\n") else {done.stdout[-300:]}


def iperf3(scene):
    need("iperf3")
    port = free_port()
    # A connection that ends at once disturbs the next one.
    scene.start(port, "iperf3", "-s", "--forceflush", "-p", port, "-B", "127.0.0.1", said="Server listening")
    failed = set()
    for args in (["-n", "50M"], ["-n", "50M", "-R"], ["-n", "20M", "-P", "4"]):
        done = scene.run("iperf3", "-c", "127.0.0.1", "-p", port, *args)
        if done.returncode != 0:
            failed.add(f"{' '.join(args)}: {done.stdout.strip()[-100:]}")
    return failed


# Stressors of stress-ng: the number of operations, and more options; the first ones use ports.  Its
# epoll is not among them: it gives epoll_wait memory that it may not access, and leaves the fault
# by siglongjmp (docs/sockets.md, section 6).
STRESSORS = {
    "sock": (400, "--sock-nodelay", "--sock-port"),
    "sockmany": (2000, "--sockmany-port"),
    "sockabuse": (200, "--sockabuse-port"),
    "poll": (2000,), "dup": (200,), "fcntl": (500,), "sendfile": (100,), "splice": (1000,), "fork": (200,), "vfork": (200,),
}


def stress_ng(scene):
    """Runs each stressor by itself, with its own checks of the results of calls."""
    need("stress-ng")
    failed = set()
    for name, (times, *more) in STRESSORS.items():
        port = [free_port()] if more else []
        done = scene.run("stress-ng", "--verify", "--timeout", 60, f"--{name}", 1, f"--{name}-ops", times, *more, *port,
                         cwd=scene.folder)
        if done.returncode != 0 or "successful run completed" not in done.stdout:
            failed.add(f"{name}: {done.stdout.strip()[-200:]}")
    return failed
