# The service and nothing else: no compiler and no tests. It runs as an unprivileged user, on a file system
# that may be read-only. Its data is in /data.

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

# The compiler and the types that it reads, and none of the tests' browsers and databases.
FROM packages AS build
RUN npm install --no-save --no-package-lock --ignore-scripts \
  $(node -p "const { devDependencies: dev } = require('./package.json'); \
    ['typescript', '@types/node', '@types/pg'].map((name) => name + '@' + dev[name]).join(' ')")
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/copy-assets.ts scripts/
COPY src src
RUN npm run build

FROM node:24-bookworm-slim
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
COPY bin bin
COPY deploy/healthcheck.sh /usr/local/bin/mayfly-healthcheck
RUN chmod 755 bin/mayfly.mjs /usr/local/bin/mayfly-healthcheck && ln -s /app/bin/mayfly.mjs /usr/local/bin/mayfly \
  && mkdir /data && chown node:node /data

# From here the default store, sqlite:data/mayfly.db, is in the volume. It is not set: a setting and
# its _FILE twin exclude each other, and the twin is what a secret comes in.
WORKDIR /
VOLUME /data
USER node
ENV NODE_ENV=production MAYFLY_HOST=0.0.0.0
EXPOSE 8402
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["/usr/local/bin/mayfly-healthcheck"]
CMD ["node", "--max-semi-space-size=8", "/app/dist/main.js", "serve"]
