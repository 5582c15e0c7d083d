// graphile-worker: its local queue of 500 and batched completion on;
// 24 jobs at once (best of a single run each of 8, 24, 64).
"use strict";
const { URL, CHUNK, peer, ran, query, main } = require("./harness.js");
const { run, makeWorkerUtils, runMigrations, Logger } = peer("graphile-worker");

const CONCURRENCY = 24;
const logger = new Logger(() => () => {});

main({
  setup: () => runMigrations({ connectionString: URL, logger }),

  producer: async () => {
    const utils = await makeWorkerUtils({ connectionString: URL, logger });
    return {
      one: (payload) => utils.addJob("job", payload),
      many: async (payloads) => {
        for (let first = 0; first < payloads.length; first += CHUNK)
          await utils.addJobs(
            payloads.slice(first, first + CHUNK).map((payload) => ({ identifier: "job", payload })),
          );
      },
      close: () => utils.release(),
    };
  },

  work: async () => {
    const worker = {
      connectionString: URL, maxPoolSize: CONCURRENCY + 4, concurrentJobs: CONCURRENCY, pollInterval: 2000,
      localQueue: { size: 500, refetchDelay: { durationMs: 0 } },
      completeJobBatchDelay: 0, failJobBatchDelay: 0,
    };
    const taskList = { job: async (payload) => { ran(payload.i); } };
    await (await run({ logger, taskList, preset: { worker } })).promise;
  },

  left: () => query("SELECT count(*) FROM graphile_worker._private_jobs"),
});
