#!/usr/bin/env bash
# One node with eight cards: a vLLM on each of two samples, six train, and new weights go from card to card.
#
#   MODEL=Qwen/Qwen3-8B RECIPE=tti OUT=runs/tti-8b deploy/node.sh [KEY=VALUE ...]
#
# Where OUT has a run already, it goes on from its last checkpoint. A word of SERVER_CARDS is a server: "0 1" are two with
# a card each, and "0,1" is one that cuts a larger model over two.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen3-8B}
RECIPE=${RECIPE:-tti}
OUT=${OUT:-runs/$RECIPE-node}
PORT=${PORT:-8000}
SERVER_CARDS=${SERVER_CARDS:-0 1}
LEARNER_CARDS=${LEARNER_CARDS:-2,3,4,5,6,7}
count() { awk -F, '{print NF}' <<<"$1"; }

servers=() addresses=()
trap 'kill "${servers[@]}" 2>/dev/null || true' EXIT
for cards in $SERVER_CARDS; do
  port=$((PORT + ${#servers[@]}))
  # development mode and its serialisation are how vLLM takes weights: keep the port on loopback
  CUDA_VISIBLE_DEVICES=$cards VLLM_SERVER_DEV_MODE=1 VLLM_ALLOW_INSECURE_SERIALIZATION=1 \
    vllm serve "$MODEL" --host 127.0.0.1 --port "$port" --tensor-parallel-size "$(count "$cards")" \
    --logprobs-mode processed_logprobs --weight-transfer-config '{"backend": "nccl"}' &
  servers+=($!)
  addresses+=("http://127.0.0.1:$port")
done
for k in "${!servers[@]}"; do
  until curl --silent --fail --output /dev/null "${addresses[k]}/health"; do
    kill -0 "${servers[k]}" 2>/dev/null || { echo "error: a server has ended before it was ready" >&2; exit 1; }
    sleep 5
  done
done

if [ -d "$OUT/checkpoints" ]; then
  run=(--resume "$OUT")
else
  run=("$RECIPE" --out "$OUT" "model=$MODEL" learner.sharded=true
    engine.type=http "engine.url=[$(printf '"%s/v1",' "${addresses[@]}")]" "engine.model=$MODEL"
    engine.weights.type=nccl engine.weights.address=127.0.0.1 "$@")
fi
CUDA_VISIBLE_DEVICES=$LEARNER_CARDS torchrun --standalone --nproc-per-node "$(count "$LEARNER_CARDS")" \
  -m longstride train "${run[@]}"
