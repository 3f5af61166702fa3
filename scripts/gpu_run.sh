#!/usr/bin/env bash
# Everything that needs a GPU, in one call, on a host with torch, triton and nvcc but no package index.
#
#   scripts/gpu_run.sh BUNDLE OUT
#
# BUNDLE is a folder with site.tar.xz (SGLang and what it needs, beyond what the host has) and, if an earlier run left
# one, caches.tar.xz (compiled kernels). OUT gets the log of each part and this run's caches.tar.xz.
set -uo pipefail
cd "$(dirname "$0")/.."
bundle=${1:?usage: scripts/gpu_run.sh BUNDLE OUT}
out=${2:?usage: scripts/gpu_run.sh BUNDLE OUT}
site=$HOME/sglang-site
caches=(.cache/flashinfer .cache/tvm-ffi .triton)
mkdir -p "$out" "$site"

part() { # part NAME SECONDS COMMAND...: run a part with a time limit and keep its output
  local name=$1 seconds=$2 started=$SECONDS
  shift 2
  echo "=== $name: $*"
  timeout "$seconds" "$@" 2>&1 | tee "$out/$name.log" | tail -n "${TAIL:-25}"
  echo "=== $name: exit code ${PIPESTATUS[0]}, $((SECONDS - started)) s"
}

[ -e "$site/sglang" ] || tar -xJf "$bundle/site.tar.xz" -C "$site"
[ -e "$bundle/caches.tar.xz" ] && tar -xJf "$bundle/caches.tar.xz" -C "$HOME"
export PYTHONPATH=$site:$PWD PYTHONUNBUFFERED=1
python3 -m compileall -q -j 16 "$site" >/dev/null 2>&1

date -u +"%Y-%m-%d %H:%M UTC"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
TAIL=40 part doctor 120 python3 -m harness.cli doctor

for name in ${PARTS:-kernels answers bench}; do
  case $name in
    kernels) part kernels 200 python3 -m pytest tests/gpu -q -m gpu -p no:cacheprovider ;;
    answers) part answers 330 python3 -m pytest tests/engine -q --device cuda -n 6 -p no:cacheprovider ;;
    bench)
      for worker in v1 v2 none; do
        TAIL=14 part "bench-$worker" 120 python3 -m harness.cli bench steps --device cuda --worker "$worker"
      done
      ;;
  esac
done

(cd "$HOME" && tar -cJf "$out/caches.tar.xz" "${caches[@]}" 2>/dev/null)
ls -l "$out"
