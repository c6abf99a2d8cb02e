# SPDX-License-Identifier: MIT
# docker build -t bloomery . && docker run -p 127.0.0.1:6379:6379 -v bloomery:/data bloomery
# For several architectures: docker-bake.hcl.
FROM debian:12-slim AS build
WORKDIR /src
# The packages change less often than the sources, so they have a layer of their own.
COPY scripts/install_deps.sh scripts/
RUN scripts/install_deps.sh server
COPY . .
# The build context has no git repository, so an argument gives the commit.
ARG BLOOMERY_COMMIT=
RUN cmake --preset server -D BLOOMERY_COMMIT="$BLOOMERY_COMMIT" \
    && cmake --build --preset server --target bloomery-server bloomery-cluster \
        --parallel "$(nproc)" \
    && strip build/server/bloomery-server build/server/bloomery-cluster \
    && cmake --install build/server --component licenses --prefix /src/build/licenses

FROM debian:12-slim
# redis-tools: probes and users expect redis-cli in the image of a server.
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libboost-json1.81.0 libfmt9 libisal2 libjemalloc2 liblzf1 libprometheus-cpp-core1.0 \
        libspdlog1.10 libssl3 libsystemd0 redis-tools \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 999 bloomery \
    && useradd --system --uid 999 --gid bloomery --home-dir /data --no-create-home bloomery \
    && mkdir /data \
    && chown bloomery:bloomery /data
COPY --from=build /src/build/server/bloomery-server /src/build/server/bloomery-cluster \
    /usr/local/bin/
COPY --from=build /src/build/licenses/share/doc/bloomery /usr/share/doc/bloomery
COPY scripts/docker-entrypoint.sh scripts/docker-healthcheck.sh /usr/local/bin/
# Charts and compose files start the server by the names of Redis and Valkey.
RUN ln -s bloomery-server /usr/local/bin/redis-server \
    && ln -s bloomery-server /usr/local/bin/valkey-server \
    && ln -s /usr/bin/redis-cli /usr/local/bin/valkey-cli
VOLUME /data
WORKDIR /data
# Port 9121 is for the dashboard, metrics and probes. It is closed unless http-port and http-bind
# are set, as docs/monitoring.md shows.
EXPOSE 6379 9121
# The health check uses the port, or the TLS port, of the running server's own arguments and files.
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["docker-healthcheck.sh"]
# The entrypoint starts as root, gives /data to the user bloomery (uid 999) and continues as that
# user.
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["bloomery-server"]
ARG BLOOMERY_VERSION=
ARG BLOOMERY_COMMIT=
ARG BLOOMERY_MAINTAINER=
ARG BLOOMERY_HOMEPAGE=
LABEL org.opencontainers.image.title="Bloomery" \
    org.opencontainers.image.description="Server for Bloom filters that speaks the Redis protocol" \
    org.opencontainers.image.licenses="MIT" \
    org.opencontainers.image.version="$BLOOMERY_VERSION" \
    org.opencontainers.image.revision="$BLOOMERY_COMMIT" \
    org.opencontainers.image.authors="$BLOOMERY_MAINTAINER" \
    org.opencontainers.image.url="$BLOOMERY_HOMEPAGE"
