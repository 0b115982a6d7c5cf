# The programs of siwa, for a Docker engine: docker build --tag siwa .
FROM swift:6.3-bookworm AS build
WORKDIR /siwa
COPY .ci/packages .ci/packages
RUN .ci/packages build ci
COPY . .
RUN make release

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates curl libcurl4 libmimalloc2.0 libpq5 librdkafka1 libsqlite3-0 libssl3 \
    libyaml-0-2 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home --home-dir /var/lib/siwa --shell /usr/sbin/nologin siwa
COPY --from=build /siwa/build/ /usr/local/bin/
USER siwa
# The spool, which holds what was answered 200 and is not on Kafka yet: it must outlive the container. And Apple's keys,
# so that a restart while Apple is down still verifies.
VOLUME /var/lib/siwa
# Whether it is alive, not whether it is ready: a container that waits for Kafka must not be restarted for that.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["curl", "--fail", "--silent", "--output", "/dev/null", "http://127.0.0.1:9443/livez"]
# Reads /etc/siwa/siwa.yaml and the variables SIWA_….
CMD ["siwa-ingress"]
