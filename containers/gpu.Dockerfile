# Models on a machine with NVIDIA GPUs. torch's wheels bring CUDA; the host needs the driver and the NVIDIA Container Toolkit.
#   docker build --file containers/gpu.Dockerfile --tag barista-bench .
#   docker run --gpus all --volume "$PWD":/work barista-bench run data --task all --model org/model --out runs/model
FROM python:3.11.13-slim-bookworm
COPY . /opt/barista_bench
WORKDIR /opt/barista_bench
RUN pip install --no-cache-dir --constraint constraints.txt torch \
 && pip install --no-cache-dir --constraint constraints.txt '.[run,api,peft,viz]'
WORKDIR /work
ENV HF_HOME=/work/hf
ENTRYPOINT ["barista-bench"]
