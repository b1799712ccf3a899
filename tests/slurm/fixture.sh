#!/bin/bash
# usage: fixture.sh up|down|kill-node N|start-node N|stop-controller|start-controller
# Runs a Slurm of several nodes on this machine for tests, without root, systemd, munge and cgroups (Debian 12, Slurm
# 22.05). FX: its directory (required); NODES=4 GPUS=8 CPUS=16; BASE: the first of NODES + 1 ports that are free.
# Afterwards `export SLURM_CONF=$FX/slurm.conf`. Partitions: gpu (the default), low (its jobs are preempted by those of
# high), high, short (one minute at most), closed (this user may not use it).
set -u
: "${FX:?set FX to a directory of its own}"
NODES=${NODES:-4} GPUS=${GPUS:-8} CPUS=${CPUS:-16}
PATH=$PATH:/usr/sbin:/sbin
export SLURM_CONF=$FX/slurm.conf
unset SQUEUE_FORMAT SINFO_FORMAT
host=$(hostname -s)
me=$(id -un)

# Slurm needs a character device for each GPU; the digits of its name become the GPU's number.
gpu_lines() {
  if mknod "$FX/dev/probe" c 1 3 2>/dev/null; then
    rm -f "$FX/dev/probe"
    for ((g = 0; g < GPUS; g++)); do mknod "$FX/dev/nvidia$g" c 1 3; done
    echo "NodeName=n[1-$NODES] Name=gpu Type=h100 File=$FX/dev/nvidia[0-$((GPUS - 1))]"
  else
    echo "NodeName=n[1-$NODES] Name=gpu Type=h100 File=/dev/tty[0-$((GPUS - 1))]"
  fi
}

write_configuration() {
  cat <<CONF
ClusterName=fixture
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/none
CredType=cred/none
SlurmctldPort=$BASE
StateSaveLocation=$FX/state
SlurmdSpoolDir=$FX/spool/%n
TmpFS=$FX/tmp/%n
SlurmctldPidFile=$FX/run/slurmctld.pid
SlurmdPidFile=$FX/run/slurmd-%n.pid
SlurmctldLogFile=$FX/log/slurmctld.log
SlurmdLogFile=$FX/log/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
EnforcePartLimits=ALL
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldTimeout=10
SlurmdTimeout=6
KillWait=2
MinJobAge=${MIN_JOB_AGE:-300}
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,bf_interval=1
CONF
  for ((i = 1; i <= NODES; i++)); do
    echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((BASE + i)) CPUs=$CPUS Boards=1 SocketsPerBoard=2" \
      "CoresPerSocket=$((CPUS / 2)) ThreadsPerCore=1 RealMemory=512000 Gres=gpu:h100:$GPUS Feature=fast State=UNKNOWN"
  done
  echo "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
  echo "PartitionName=low Nodes=ALL MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE State=UP"
  echo "PartitionName=high Nodes=ALL MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF State=UP"
  echo "PartitionName=short Nodes=ALL MaxTime=1 State=UP"
  echo "PartitionName=closed Nodes=ALL AllowAccounts=nobody AllowGroups=nogroup State=UP"
}

start_controller() { slurmctld || { tail -n 5 "$FX/log/slurmctld.log"; return 1; }; }
start_node() { slurmd -N "n$1" || { tail -n 5 "$FX/log/slurmd-n$1.log"; return 1; }; }

up() {
  : "${BASE:?set BASE to a free port}"
  rm -rf "$FX"
  mkdir -p "$FX"/{state,log,run,dev,spool,tmp}
  for ((i = 1; i <= NODES; i++)); do mkdir -p "$FX/spool/n$i"; done
  write_configuration >"$FX/slurm.conf"
  echo "CgroupPlugin=cgroup/v1" >"$FX/cgroup.conf" # named, so that Slurm does not look for one
  gpu_lines >"$FX/gres.conf"
  start_controller || return 1
  for ((i = 1; i <= NODES; i++)); do start_node "$i" || return 1; done
  for ((t = 0; t < 400; t++)); do
    [ "$(sinfo -h -p gpu -o '%t %D' 2>/dev/null)" = "idle $NODES" ] && return 0
    sleep 0.05
  done
  sinfo -R
  return 1
}

# Prints the daemons that run the jobs of node $1, or of all nodes. They are recognised by the log that they have open.
step_daemons() {
  for process in /proc/[0-9]*; do
    [ "$(cat "$process/comm" 2>/dev/null)" = slurmstepd ] || continue
    ls -l "$process/fd" 2>/dev/null | grep -q "$FX/log/slurmd-${1:-n[0-9]*}\.log" && echo "${process#/proc/}"
  done
}
# Prints what these step daemons have started. It must be killed with them, because no cgroup does that here.
descendants() {
  local pid child
  for pid in "$@"; do
    for child in $(cat "/proc/$pid/task/$pid/children" 2>/dev/null); do
      echo "$child"
      descendants "$child"
    done
  done
}
kill_node() {
  local daemons all
  daemons=$(step_daemons "n$1")
  # shellcheck disable=SC2086
  all="$(cat "$FX/run/slurmd-n$1.pid") $daemons $(descendants $daemons)"
  # shellcheck disable=SC2086
  kill -9 $all 2>/dev/null
  return 0
}

stop_controller() { # with SIGTERM, because with SIGKILL it would lose what it has not saved
  local pid
  pid=$(cat "$FX/run/slurmctld.pid")
  kill "$pid"
  for ((t = 0; t < 400; t++)); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.05; done
  return 1
}

down() {
  local pids="" alive=0 left
  [ -d "$FX" ] || return 0
  scancel --user="$me" 2>/dev/null
  for file in "$FX"/run/slurmd-*.pid "$FX"/run/slurmctld.pid; do [ -s "$file" ] && pids="$pids $(cat "$file")"; done
  # shellcheck disable=SC2086
  [ -n "$pids" ] && kill $pids 2>/dev/null
  for ((t = 0; t < 200; t++)); do
    alive=0
    for pid in $pids; do kill -0 "$pid" 2>/dev/null && alive=1; done
    [ $alive = 0 ] && break
    sleep 0.05
  done
  left=$(step_daemons "")
  # shellcheck disable=SC2086
  kill -9 $pids $left $(descendants $left) 2>/dev/null
  return 0
}

case ${1:-} in
up) up ;;
down) down ;;
kill-node) kill_node "$2" ;;
start-node) start_node "$2" ;;
stop-controller) stop_controller ;;
start-controller) start_controller ;;
*)
  sed -n 2,6p "$0" >&2
  exit 2
  ;;
esac
