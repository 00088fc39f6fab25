# One image for every part: Airflow's services, Spark's master and workers, the sample web. One lock
# file, so that the driver and the workers hold the same packages to the last digit.
FROM python:3.11-slim-bookworm

# procps: Spark's scripts ask it for running processes; tini: children are reaped.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini curl \
    && rm -rf /var/lib/apt/lists/*

ENV JAVA_HOME=/usr/lib/jvm/default-java \
    PATH=/opt/recrawl/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYSPARK_PYTHON=/opt/recrawl/.venv/bin/python \
    AIRFLOW_HOME=/opt/recrawl/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/recrawl/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/recrawl/plugins
RUN ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /usr/lib/jvm/default-java

RUN useradd --create-home --uid 50000 recrawl && install -d -o recrawl /opt/recrawl
USER recrawl
WORKDIR /opt/recrawl

# The packages and jars first: they change seldom, the code often.
COPY --chown=recrawl requirements.lock pyproject.toml README.md LICENSE ./
COPY --chown=recrawl include/recrawl/__init__.py include/recrawl/errors.py include/recrawl/
COPY --chown=recrawl include/recrawl/bootstrap include/recrawl/bootstrap
COPY --chown=recrawl jobs/__init__.py jobs/
RUN PYTHONPATH=include python -m recrawl.bootstrap --s3

COPY --chown=recrawl include include
COPY --chown=recrawl jobs jobs
COPY --chown=recrawl dags dags
COPY --chown=recrawl plugins plugins
RUN PYTHONPATH=include python -m recrawl.bootstrap --s3 && install -d airflow/logs

ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["airflow", "version"]
