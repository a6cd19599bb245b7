# neurise on a CPU: docker build -t neurise . && docker run --rm neurise demo
# Models and data are read and written in /work: docker run --rm -v "$PWD:/work" neurise train rows.csv -o model
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels .

FROM python:3.12-slim
# The CPU build of torch: the one of the package index brings several gigabytes of CUDA.
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu 'torch>=2.6'
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[metrics,plots,frames,parquet,hub]" && rm -r /wheels
RUN useradd --create-home neurise && mkdir /work && chown neurise /work
USER neurise
WORKDIR /work
ENTRYPOINT ["neurise"]
CMD ["--help"]
