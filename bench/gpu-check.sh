#!/usr/bin/env bash
# Checks and measures GPUs: every example and every case against the reference device with every strategy on 1, 2 and 4
# subdomains of a card, the sanitizer on a small grid where there is one, heat at n = 512 and 768, strategies, recorded steps,
# transfers. Takes a few minutes; writes one JSON and one Markdown file.
#
#   bench/gpu-check.sh                   run it; builds first if nothing was built and cargo is there
#   bench/gpu-check.sh --devices hip     the same on AMD's cards; all options of the program: --help
#   bench/gpu-check.sh build             only build, into target/gpu-check: that folder and this script are all that another
#                                        machine needs, which has no compiler (but a libc as new as the one here)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bundle=$root/target/gpu-check
examples=(heat wave elastic gray_scott burgers himeno perona_malik automaton poisson cases)

build() {
    local built=${CARGO_TARGET_DIR:-$root/target}/release name
    (cd "$root" && cargo build --release -p polyhalo --examples && cargo build --release -p polyhalo-bench --bin gpu)
    rm -rf "$bundle"
    mkdir -p "$bundle"
    for name in "${examples[@]/#/examples/}" gpu; do
        cp "$built/$name" "$bundle/"
        ! command -v strip >/dev/null || strip "$bundle/${name##*/}"
    done
    # PTX is text, so that it can be found in a program.
    grep -qa '^\.target sm_' "$bundle/heat" || echo "note: NVRTC was not there (tests/install nvrtc), so that the programs carry no PTX: a machine with NVIDIA's cards needs NVRTC then" >&2
    echo "built $(du -sh "$bundle" | cut -f1) in $bundle"
}

if [ "${1:-}" = build ]; then
    build
    exit
fi
if [ ! -x "$bundle/gpu" ]; then
    command -v cargo >/dev/null || { echo "gpu-check: nothing was built, and cargo is not here: run 'bench/gpu-check.sh build' elsewhere and bring target/gpu-check" >&2; exit 2; }
    build
fi
machine=$(uname -srm)
if command -v nvidia-smi >/dev/null; then
    machine+="; $(nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem --format=csv,noheader | sort | uniq -c | tr -s ' \n' ' ')"
fi
if command -v rocm-smi >/dev/null; then
    machine+="; $(rocm-smi --showproductname --showdriverversion --csv | tail -n +2 | tr '\n' ' ')"
fi
# Runs that hang end as failures.
exec timeout "${GPU_CHECK_SECONDS:-540}" "$bundle/gpu" --programs "$bundle" --machine "$machine" --out "$root/target/gpu-check-results" "$@"
