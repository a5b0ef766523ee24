# Longstride on NVIDIA's cards, with vLLM as the engine:
#   docker build -f deploy/cuda.Dockerfile -t longstride-cuda .
#   docker run --rm --gpus all --ipc=host -v "$PWD/runs:/runs" longstride-cuda train tti model=Qwen/Qwen3-1.7B
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# compilers are for kernels that are made when a run begins
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap curl g++ python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/venv/bin:$PATH
RUN python3 -m venv /venv
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
# without constraints.txt: vLLM brings the torch that it was built with
ARG EXTRAS=gpu,vllm,lora,liger,torchao,plot,mcp,parquet
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ".[$EXTRAS]"
RUN useradd --uid 10001 --create-home longstride && mkdir /runs && chown longstride /runs
USER 10001
WORKDIR /
ENTRYPOINT ["longstride"]
CMD ["doctor"]
