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

stamped() { # each line with its second where STAMP is set: where the time of a search goes
  [ -n "${STAMP:-}" ] || exec cat
  python3 -uc 'import sys, time
begun = time.monotonic()
for line in sys.stdin: print(f"{time.monotonic() - begun:5.0f} s  {line}", end="", flush=True)'
}

part() { # part NAME SECONDS COMMAND...: run a part with a time limit and keep its output
  local name=$1 seconds=$2 started=$SECONDS
  shift 2
  echo "=== $name: $*"
  timeout --signal INT --kill-after 20 "$seconds" "$@" 2>&1 | stamped | tee "$out/$name.log" | tail -n "${TAIL:-25}"
  echo "=== $name: exit code ${PIPESTATUS[0]}, $((SECONDS - started)) s"
}

[ -e "$site/sglang" ] || tar -xJf "$bundle/site.tar.xz" -C "$site"
[ -e "$bundle/caches.tar.xz" ] && tar -xJf "$bundle/caches.tar.xz" -C "$HOME"
export PYTHONPATH=$site:$PWD PYTHONUNBUFFERED=1
python3 -m compileall -q -j 16 "$site" >/dev/null 2>&1

date -u +"%Y-%m-%d %H:%M UTC"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
[ -n "${SKIP_DOCTOR:-}" ] || TAIL=40 part doctor 120 python3 -m harness.cli doctor

shape="--shape llama-3.1-8b --accept-length 3" # MODELS="--target FOLDER --draft FOLDER" for weights
pytest=(python3 -m pytest -v -p no:cacheprovider -p no:benchmark -W ignore --durations 5)
for name in ${PARTS:-main-job bench bench-toggle bench-shape bench-checks profile-checks bench-search search detect replay cold serve kernels answers throughput workload profile validate auto}; do
  case $name in
    main-job) TAIL=45 part main-job 100 python3 -m harness.cli run --batch-sizes 1,10,3 --dtype bfloat16 \
      --toggle warm --threshold 5 ;;
    bench)
      for kind in ${BENCHES:-v1-bfloat16 v2-bfloat16 none-bfloat16 v1-float32 v2-float32 none-float32}; do
        TAIL=12 part "bench-$kind" 100 \
          python3 -m harness.cli bench steps --device cuda --worker "${kind%-*}" --dtype "${kind#*-}"
      done
      ;;
    bench-toggle)
      for worker in ${BENCH_TOGGLE:-v1 v2}; do
        TAIL=14 part "bench-toggle-$worker" "${TOGGLE_S:-150}" \
          python3 -m harness.cli bench toggle --device cuda --worker "$worker" --dtype bfloat16 --rounds "${ROUNDS:-3}"
      done
      ;;
    bench-shape)
      for worker in ${BENCH_SHAPE:-v1 v2}; do
        TAIL=14 part "bench-shape-$worker" "${SHAPE_S:-200}" \
          python3 -m harness.cli bench toggle --device cuda --worker "$worker" --dtype bfloat16 \
          --shape llama-3.1-8b --batch-size 64 --rounds "${ROUNDS:-2}"
      done
      ;;
    throughput) # curves of one engine set a worker, and the threshold that they speak for
      for worker in ${THROUGHPUT:-v2 v1}; do
        TAIL=150 part "throughput-$worker" "${THROUGHPUT_S:-500}" \
          python3 -m harness.cli bench throughput --device cuda --worker "$worker" ${MODELS:-$shape} \
          --minutes "${THROUGHPUT_MINUTES:-7}" --rounds "${ROUNDS:-3}" ${THROUGHPUT_OPTIONS:-} --output "$out/throughput-$worker"
        part "threshold-$worker" 60 python3 -m harness.cli bench threshold "$out/throughput-$worker/throughput.json"
      done
      ;;
    throughput-server)
      for worker in ${THROUGHPUT_SERVER:-v2}; do
        TAIL=150 part "throughput-server-$worker" "${THROUGHPUT_S:-500}" \
          python3 -m harness.cli bench throughput --server --device cuda --worker "$worker" ${MODELS:-$shape} \
          --minutes "${THROUGHPUT_MINUTES:-7}" --rounds "${ROUNDS:-2}" ${THROUGHPUT_OPTIONS:-} \
          --output "$out/throughput-server-$worker"
      done
      ;;
    workload)
      for worker in ${WORKLOAD:-v2 v1}; do
        TAIL=100 part "workload-$worker" "${WORKLOAD_S:-500}" \
          python3 -m harness.cli bench workload --device cuda --worker "$worker" ${MODELS:-$shape} \
          --minutes "${WORKLOAD_MINUTES:-7}" --rounds "${ROUNDS:-2}" ${WORKLOAD_OPTIONS:-} --output "$out/workload-$worker"
      done
      ;;
    profile)
      for worker in ${PROFILE:-v2 v1}; do
        TAIL=150 part "profile-$worker" "${PROFILE_S:-200}" \
          python3 -m harness.cli bench profile --device cuda --worker "$worker" ${MODELS:-$shape} \
          ${PROFILE_OPTIONS:-} --output "$out/profile-$worker"
      done
      ;;
    bench-checks)
      for worker in ${BENCH_CHECKS:-v1 v2}; do
        TAIL=8 part "bench-checks-$worker" 100 \
          python3 -m harness.cli bench checks --device cuda --worker "$worker" --dtype bfloat16
      done
      ;;
    profile-checks)
      for worker in ${PROFILE_CHECKS:-v1 v2}; do
        TAIL=30 part "profile-checks-$worker" 90 python3 scripts/profile_checks.py "$worker" cuda
      done
      ;;
    bench-search)
      part bench-search "${BENCH_SEARCH_S:-200}" python3 -m harness.cli bench search --device cuda --examples "${EXAMPLES:-40}"
      ;;
    search) # exit code 1: found
      for patch in ${SEARCH:-attempt-1 attempt-2 attempt-3}; do
        STAMP=1 TAIL=12 part "search-$patch" "${SEARCH_S:-120}" python3 -m harness.cli search --device cuda --patch "$patch" \
          ${SEARCH_OPTIONS:---seed 1} --output "$out/findings" --database "$out/examples"
      done
      ;;
    detect)
      cp docs/detection.md "$out"/ 2>/dev/null
      TAIL=40 part detect "${DETECT_S:-500}" python3 -m harness.cli detect --device cuda --write "$out/detection.md"
      ;;
    replay) # what happens on a GPU is written into the cases, and comes back with OUT
      TAIL=70 part replay "${REPLAY_S:-300}" python3 -m harness.cli replay ${REPLAY:---all} --record --device cuda
      tar -cf "$out/expected.tar" $(find cases -name expected.json)
      ;;
    cold) TAIL=4 part cold "${COLD_S:-200}" python3 -m harness.cli replay --device cuda --times 20 ${COLD:-cases/attempt-3} ;;
    serve)
      for worker in ${SERVE:-v1 v2}; do
        TAIL=12 part "serve-$worker" 120 python3 -m harness.cli serve --device cuda --worker "$worker" \
          --toggle warm --threshold 5 --max-new-tokens 256 --log "$out/server-$worker.log"
      done
      ;;
    validate) # goes on where an earlier one stopped, if its folder was carried here; comes back with OUT
      resume=""
      [ ! -e validation/stages.jsonl ] || resume=--resume
      STAMP=1 TAIL=30 part validate "${VALIDATE_S:-540}" python3 -m harness.cli validate ${VALIDATE:-warm} --profile standard \
        --device cuda --output validation $resume
      tar -cf "$out/validation.tar" validation
      ;;
    sglang-toggle) # of a BUNDLE with sglang 0.5.17; never one of the rest, which run on the pinned release
      mkdir -p "$site/deep_gemm" # imported with speculation on, and called by no dense model
      echo "def __getattr__(name): return None" >"$site/deep_gemm/__init__.py"
      TAIL=150 part sglang-toggle "${SGLANG_TOGGLE_S:-400}" env SGLANG_ENABLE_JIT_DEEPGEMM=0 \
        python3 scripts/profile_sglang_toggle.py fixtures/shapes/llama-3.1-8b "$out/sglang-toggle"
      ;;
    draft-locs) part draft-locs 150 python3 scripts/stress_draft_locs.py "${DRAFT_LOCS_S:-10}" ;;
    auto) TAIL=40 part auto "${AUTO_S:-300}" "${pytest[@]}" ${AUTO:-tests/pytesting tests/search} -n auto --require-gpu ;;
    kernels) part kernels "${KERNELS_S:-240}" "${pytest[@]}" tests/gpu -m gpu -n 8 ;;
    answers) part answers "${ANSWERS_S:-300}" "${pytest[@]}" ${TESTS:-tests/engine tests/serving tests/cases} --device cuda -n "${WORKERS:-8}" ;;
  esac
done
[ -n "${SKIP_CACHES:-}" ] || (cd "$HOME" && tar -c "${caches[@]}" 2>/dev/null | xz -T 0 -7 >"$out/caches.tar.xz")
ls -l "$out"
