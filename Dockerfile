# SPDX-License-Identifier: MIT
# docker build -t bloomery . && docker run -p 6379:6379 -v bloomery:/data bloomery
FROM debian:12-slim AS build
WORKDIR /src
# The packages change less often than the sources, so they have a layer of their own.
COPY scripts/install_deps.sh scripts/
RUN scripts/install_deps.sh run
COPY . .
RUN cmake --preset release \
    && cmake --build --preset release --target bloomery-server bloomery-cluster \
        --parallel "$(nproc)" \
    && strip build/release/bloomery-server build/release/bloomery-cluster

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
COPY --from=build /src/build/release/bloomery-server /src/build/release/bloomery-cluster \
    /usr/local/bin/
COPY scripts/docker-entrypoint.sh /usr/local/bin/
# Charts and compose files start the server by the names of Redis and Valkey.
RUN ln -s bloomery-server /usr/local/bin/redis-server \
    && ln -s bloomery-server /usr/local/bin/valkey-server \
    && ln -s /usr/bin/redis-cli /usr/local/bin/valkey-cli
VOLUME /data
WORKDIR /data
EXPOSE 6379
# If the server uses another port, add --health-cmd 'bloomery-server --health-check --port N'.
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s \
    CMD ["bloomery-server", "--health-check"]
# The entrypoint starts as root, gives /data to the user bloomery (uid 999) and continues as that
# user.
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["bloomery-server"]
