# The service and nothing else: no compiler and no tests. It runs as an unprivileged user, on a file system
# that may be read-only. Its data is in /data.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/copy-assets.ts scripts/
COPY src src
RUN npm run build

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:24-bookworm-slim
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
COPY bin bin
RUN chmod 755 bin/mayfly.mjs && ln -s /app/bin/mayfly.mjs /usr/local/bin/mayfly \
  && mkdir /data && chown node:node /data

# From here the default store, sqlite:data/mayfly.db, is in the volume. It is not set: a setting and
# its _FILE twin exclude each other, and the twin is what a secret comes in.
WORKDIR /
VOLUME /data
USER node
ENV NODE_ENV=production MAYFLY_HOST=0.0.0.0
EXPOSE 8402
STOPSIGNAL SIGTERM
# Liveness alone: an instance whose Lightning node is away must not be restarted for it.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MAYFLY_PORT ?? 8402}/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=8", "/app/dist/main.js", "serve"]
