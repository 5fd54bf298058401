# Stages, all thin calls of scripts: build (the plugin files), test (everything scripts/test runs), device-plugin and
# extended-resource (the images that build/manifests deploys), and plugins, the last: only the files, to be laid into a
# volume or copied into core's image, which must have the Python that the files name.
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

FROM build AS extended-resource-files
RUN scripts/build extended-resource.pyz && scripts/unpack dist/extended-resource.pyz /extended-resource

FROM debian:bookworm-slim AS python
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/*

FROM python AS device-plugin
COPY --from=device-plugin-files /device-plugin /usr/lib/device-plugin
ENV PYTHONPATH=/usr/lib/device-plugin PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["/usr/bin/python3", "-m", "resource_extend.kubernetes.cli"]
CMD ["run", "--config", "/etc/device-plugin/config.yaml"]

FROM python AS extended-resource
COPY --from=extended-resource-files /extended-resource /usr/lib/extended-resource
ENV PYTHONPATH=/usr/lib/extended-resource PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["/usr/bin/python3", "-m", "resource_extend.kubernetes.extended_resource"]

FROM scratch AS plugins
COPY --from=build /plugins /plugins
VOLUME /plugins
