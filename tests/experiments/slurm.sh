#!/bin/sh
# A Slurm of one node on this machine, from Debian's packages slurm-wlm and munge, in a folder of its own.
#
#     tests/experiments/slurm.sh start FOLDER     # as root; then SLURM_CONF=FOLDER/slurm.conf squeue
#     tests/experiments/slurm.sh stop FOLDER
#
# Nothing outside the folder is written, and no service of the machine is touched.
set -eu

action=$1
folder=$(realpath -m "$2")
conf=$folder/slurm.conf
export SLURM_CONF="$conf"

stop() {
    for name in slurmd slurmctld munged; do
        if [ -s "$folder/$name.pid" ]; then
            pid=$(cat "$folder/$name.pid")
            kill "$pid" 2>/dev/null || true
            for _ in $(seq 40); do
                kill -0 "$pid" 2>/dev/null || break
                sleep 0.25
            done
        fi
    done
}

start() {
    for program in munged slurmctld slurmd sinfo; do
        if ! command -v "$program" >/dev/null; then
            echo "$program is not installed; as root: apt-get install slurm-wlm munge" >&2
            exit 3
        fi
    done
    node=$(hostname -s)
    mkdir -p "$folder/state" "$folder/spool"
    chmod 755 "$folder"
    (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
    cat >"$conf" <<CONF
ClusterName=here
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=${SLURMCTLD_PORT:-16817}
SlurmdPort=${SLURMD_PORT:-16818}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/MemTotal/ {print int($2 / 2048)}' /proc/meminfo) State=UNKNOWN
PartitionName=here Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
    slurmctld -f "$conf"
    slurmd -f "$conf"
    for _ in $(seq 60); do
        if sinfo -h -o %T 2>/dev/null | grep -q idle; then
            exit 0
        fi
        sleep 0.5
    done
    echo "the node did not come up; see the logs in $folder" >&2
    exit 1
}

case $action in
    start) start ;;
    stop) stop ;;
    *) echo "usage: $0 start|stop FOLDER" >&2; exit 2 ;;
esac
