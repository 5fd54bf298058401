# Stages, all thin calls of scripts: build (the plugin files), test (everything scripts/test runs), device-plugin (the
# image that build/manifests/device-plugin deploys), and plugins, the last: only the files, to be laid into a volume or
# copied into core's image, which must have the Python that the files name.
FROM debian:bookworm-slim AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /project
COPY . .
RUN scripts/setup pack && scripts/build && mkdir /plugins && scripts/install /plugins

FROM build AS test
RUN scripts/test

# One interpreter, unpacked here, so that the root file system can be read-only.
FROM build AS device-plugin-files
RUN scripts/build device-plugin.pyz && scripts/unpack dist/device-plugin.pyz /device-plugin

FROM debian:bookworm-slim AS device-plugin
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=device-plugin-files /device-plugin /usr/lib/device-plugin
ENV PYTHONPATH=/usr/lib/device-plugin PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["/usr/bin/python3", "-m", "resource_extend.kubernetes.cli"]
CMD ["run", "--config", "/etc/device-plugin/config.yaml"]

FROM scratch AS plugins
COPY --from=build /plugins /plugins
VOLUME /plugins
