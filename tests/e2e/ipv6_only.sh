#!/bin/bash
# usage: ipv6_only.sh TEST_PROGRAM UNIT...
# Runs the units of the program in a network namespace in which this machine has no
# IPv4 address, only ::1. Exit code 77: the system does not let this user create
# such a network, for example in a chroot.
set -euo pipefail

network=(unshare --net)
[ "$(id -u)" -eq 0 ] || network=(unshare --map-root-user --net)
if ! command -v python3 >/dev/null || ! "${network[@]}" true 2>/dev/null; then
  echo "skipped: no network of its own can be made here"
  exit 77
fi

# Activates the loopback interface and removes its IPv4 address: netdevice(7),
# ioctl_list(2).
read -r -d '' without_ipv4 <<'PY' || true
import fcntl, os, socket, struct, sys
SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP, IFF_LOOPBACK = 0x8914, 0x8916, 0x1, 0x8
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_LOOPBACK))
    fcntl.ioctl(control, SIOCSIFADDR, struct.pack("16sHH4s8x", b"lo", socket.AF_INET, 0, bytes(4)))
with socket.socket(socket.AF_INET6) as six:
    try:
        six.bind(("::1", 0))
    except OSError:
        sys.exit(77)  # the kernel has no IPv6
with socket.socket() as four:
    try:
        four.bind(("127.0.0.1", 0))
        sys.exit("127.0.0.1 is still there")
    except OSError:
        pass
os.execv(sys.argv[1], sys.argv[1:])
PY
program=$1
shift
for unit in "$@"; do
  "${network[@]}" python3 -c "$without_ipv4" "$program" "$unit"
done
