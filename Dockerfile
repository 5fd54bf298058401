# Stages, all thin calls of scripts: build (the plugin files), test (everything scripts/test runs), and plugins, the last:
# only the files, to be laid into a volume or copied into core's image, which must have the Python that the files name.
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

FROM scratch AS plugins
COPY --from=build /plugins /plugins
VOLUME /plugins
