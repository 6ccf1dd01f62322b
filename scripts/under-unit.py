"""`under-unit.py UNIT COMMAND…` runs a command with the system calls and address families that a unit of systemd
leaves it, and without new privileges. It needs no systemd that runs, only `systemd-analyze` and Debian's
python3-seccomp. Of a unit it knows SystemCallFilter=, SystemCallErrorNumber=EPERM and RestrictAddressFamilies=."""

import os
import re
import socket
import subprocess
import sys

import seccomp


def settings(unit: str, name: str) -> list[str]:
    with open(unit) as lines:
        return re.findall(rf"^{name}=(.*)$", lines.read(), re.MULTILINE)


def calls(names: list[str]) -> set[str]:
    """The system calls behind names, of which some are groups."""
    found = set()
    for name in names:
        if not name.startswith("@"):
            found.add(name)
            continue
        told = subprocess.run(
            ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
        )
        members = [line.strip() for line in told.stdout.splitlines() if line.startswith("    ")]
        found |= calls([member for member in members if not member.startswith("#")])
    return found


def filtered(unit: str) -> seccomp.SyscallFilter:
    allowed = calls(["@default"])
    for line in settings(unit, "SystemCallFilter"):
        if line.startswith("~"):
            allowed -= calls(line[1:].split())
        else:
            allowed |= calls(line.split())
    assert settings(unit, "SystemCallErrorNumber") == ["EPERM"], unit
    rules = seccomp.SyscallFilter(seccomp.ERRNO(1))
    known = 0
    for call in allowed - {"socket"}:
        try:
            rules.add_rule(seccomp.ALLOW, call)
            known += 1
        except RuntimeError:
            pass  # of another architecture
    assert known > 200, known
    for family in settings(unit, "RestrictAddressFamilies")[0].split():
        rules.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, getattr(socket, family)))
    return rules


if __name__ == "__main__":
    filtered(sys.argv[1]).load()
    os.execvp(sys.argv[2], sys.argv[2:])
