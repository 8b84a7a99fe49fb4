"""Bytes on disk: Kafka's own files, synchronous, without a clock and without trio.

Everything runs on the loop, except jobs, which are made for a thread. Packages, each of which imports only those below:

  inspection               `kpybroker log dump` and `log verify`
  directories, cleaning    all logs of a broker; compaction
  log                      the log of one partition
  segments                 its segments and their indexes
  disk                     files, names, formats of small files

A broker starts from `directories.manager.LogManager(files, log_dirs, LogSettings)`:
  dirs    `log_dirs.LogDirs`: `configured`, `live`, `offline`, `meta` (cluster_id, broker_id or None),
          `check_meta(cluster_id, broker_id)`, `write_meta(...)`, `is_live(log_dir)`, `disk_usage(log_dir)`
  start   `load(config_for_topic, now_ms)`
  logs    `get(topic, partition)`, `get_or_create(topic, partition, topic_id, config, now_ms)`,
          `delete(topic, partition, now_ms)` and then `sync_deletions() -> job`, iteration, `logs_of(topic)`,
          `logs_in(log_dir)`, `prepare_truncation(offsets) -> job` before `Log.truncate_to`
  timed   `cleanup_logs(now_ms)` yields counts of segments removed, `deletions_due(now_ms) -> [job]`,
          `flush_jobs(now_ms)` yields FlushJobs, `recovery_point_checkpoint()`,
          `log_start_offset_checkpoint()`, `high_watermark_checkpoint()` -> job
  end     `take_offline(log_dir, cause)`, `shutdown(broker_epoch)`

It gives `log.log.Log`:
  write   `append_as_leader(ProducedBatches, leader_epoch) -> AppendInfo`, `append_as_follower(records, now_ms=)`,
          `append_copied(records, now_ms=)`
  read    `read(start, max_bytes, max_offset=, min_one_message=) -> FetchSlice`, `aborted_transactions(start, fetched)`,
          `search_timestamp`, `search_max_timestamp` (both step by step), `legacy_offsets_before`
  state   `update_high_watermark`, `assign_epoch`, `end_offset_for_epoch`,
          `epoch_for_offset`, `earliest_epoch`, `latest_epoch`, `update_config`, and the attributes `log_start_offset`,
          `high_watermark`, `last_stable_offset`, `log_end_offset`, `recovery_point`, `size`, `topic_id`, `config`,
          `partition`, `directory`, `log_dir`, `producers`
  change  `truncate_to`, `truncate_fully_and_start_at`, `increment_log_start_offset`, `delete_old_segments`, `roll`,
          `prepare_flush() -> FlushJob`, `flush()`, `close`

`log.flush.FlushJob`: `run()` in a thread, then `complete()` on the loop, always both; `complete` raises LogDirError,
or KAFKA_STORAGE_ERROR on a full disk.
`cleaning.cleaned`: `cleaning_job(log, target, ...)` for `cleaner.clean` in a process, `swap_in(log, cleaned, now_ms) ->
job`; and `Log.cleaner_offset`, `Log.cleaning`, `Log.abort_cleaning()`, `LogManager.cleaner_offset_checkpoint() -> job`.
`disk.slice.FileSlice`: `position`, `size`, `fileno()`, `read()`, and `release()` once, after sending.
`disk.errors`: LogDirError (take the directory offline), and what stops a start.
"""
