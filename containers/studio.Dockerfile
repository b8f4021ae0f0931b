# The studio. It listens on the machine itself alone, so that the container shares the host's network; the address with its token is
# printed.
#   docker build --file containers/studio.Dockerfile --tag barista-studio .
#   docker run --network host --volume "$PWD":/work barista-studio kitchen data runs
FROM python:3.11.13-slim-bookworm
COPY . /opt/barista_bench
WORKDIR /opt/barista_bench
RUN pip install --no-cache-dir --constraint constraints.txt '.[studio,annotate]'
WORKDIR /work
ENTRYPOINT ["barista-bench", "studio", "--no-browser"]
