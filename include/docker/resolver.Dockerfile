# A caching resolver for the fetch tasks: a crawl asks for the same names again and again, and an
# operator's resolver is not meant for that.
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends unbound dns-root-data ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY include/docker/unbound.conf /etc/unbound/unbound.conf
EXPOSE 53/udp 53/tcp
CMD ["unbound", "-d", "-c", "/etc/unbound/unbound.conf"]
