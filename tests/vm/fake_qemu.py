#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the place of QEMU in tests of the runner: writes to the channel and to the kernel's log as it is told.

The initramfs of the run is a list of actions: a JSON file with, for each guest, pairs of a verb and its text.
"""
import json
import re
import socket
import sys
import time


def main():
    line = " ".join(sys.argv)
    name = re.search(r"VM_GUEST=(\w+)", line).group(1)
    log = re.search(r"file,id=con,path=(\S+)", line).group(1)
    channel = socket.socket(fileno=int(re.search(r"id=res,fd=(\d+)", line).group(1)))
    with open(sys.argv[sys.argv.index("-initrd") + 1], encoding="utf-8") as file:
        steps = json.load(file)[name]
    for verb, text in steps:
        if verb == "say":
            channel.sendall(text.encode() + b"\n")
        elif verb == "ask":
            channel.sendall(b"ask " + text.encode() + b"\n")
            answer = channel.recv(100).decode().strip()
            channel.sendall(f"# answer {answer}\n".encode())
        elif verb == "log":
            with open(log, "a", encoding="utf-8") as file:
                file.write(text + "\n")
        elif verb == "hang":
            channel.sendall(b"# hangs\n")
            while True:
                time.sleep(3600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
