#!/bin/bash
# Measure the runs of the study in the current folder: popmodel, mpirun and the programs in PATH.
set -u
mkdir -p runs
popmodel machine measure -o machine.json
traced() { # NAME SPLIT PARAMETER SIZE REPEAT ARGUMENT...
    local name=$1 processes=${2%x*} threads=${2#*x} bind=()
    [ "$threads" = 2 ] && bind=(--bind-to none)
    OMP_NUM_THREADS=$threads popmodel trace -o "runs/$name.$2.$3=$4.$5.prv.gz" -- \
        mpirun "${bind[@]}" -n "$processes" "$name" "${@:6}" || echo "failed: $name $2 $3=$4"
}
for repeat in 1 2 3; do
    for n in 64 96 128 160 192 224 256; do
        for split in 1x1 2x1 1x2; do traced stencil3d $split N $n $repeat $n 100; done
    done
    for n in 480 720 960 1200 1440 1680; do
        for split in 1x1 1x2; do traced cannon $split N $n $repeat $n; done
    done
    for n in 32 48 64 80 96; do
        for split in 1x1 2x1 1x2; do
            traced hpccg $split n $n $repeat $n $n $((n / ${split%x*}))
        done
    done
done
for name in stencil3d cannon hpccg; do
    named=()
    for trace in runs/"$name".*.prv.gz; do
        size=${trace#*=}
        parameter=${trace%=*}
        named+=("$trace:${parameter##*.}=${size%%.*}")
    done
    popmodel convert "${named[@]}" -o "runs/$name.csv" --force
done
popmodel signature from runs/hpccg.{1x1,2x1,1x2}.n=48.1.prv.gz:n=48 \
    runs/hpccg.{1x1,2x1,1x2}.n=80.1.prv.gz:n=80 --name hpccg -o hpccg.toml --force
