# The HTTP service, run by a user without rights. docs/OPERATE.md says how to build and start it.
FROM python:3.11-slim

RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir '.[serve]'

RUN useradd --uid 10001 --no-create-home fewlier
WORKDIR /models
USER 10001
EXPOSE 8000
HEALTHCHECK --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/ready')"]
CMD ["fewlier", "serve", "/models/fraud.fewlier", "--host", "0.0.0.0", "--workers", "2", "--token-file", "/run/secrets/token"]
