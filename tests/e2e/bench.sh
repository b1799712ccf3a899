# Sourced by the tests that start krigtune-bench in all possible ways.

# Allows mpirun as root, with more ranks than cores, and without other hosts.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_plm_rsh_agent=/bin/true

# has_mpi BUILT_WITH_IT returns whether krigtune-bench and this machine can run
# under mpirun. Open MPI 4 starts nothing if the machine has only IPv6.
has_mpi() { [ "$1" = 1 ] && command -v mpirun >/dev/null && mpirun -np 2 true >/dev/null 2>&1; }

# The address at which processes of this machine meet.
loopback=127.0.0.1
grep -qs '127\.0\.0\.1' /proc/net/fib_trie || loopback=::1

# Sets `port` to the next one on which nobody listens, beginning with one that
# depends on this process. It is below the ports that the system assigns by
# itself.
port=$((20000 + $$ % 10000))
next_port() {
  port=$((port + 1))
  while (exec 3<>"/dev/tcp/$loopback/$port") 2>/dev/null; do port=$((port + 1)); done
}
