// The figures that the live page shows, by their names in docs/metrics.md.

export const METRICS: readonly string[] = [
  "accuracy",
  "train_loss",
  "completeness",
  "round_s",
  "rtt_s_p50",
  "rtt_s_p95",
  "cpu_mix_s",
  "cpu_learner_s",
  "cpu_s",
  "pss_mib",
  "fragments_resent",
  "fragments_late",
  "round",
  "queue_own",
  "queue_transit",
  "cover_share",
  "peers_routable",
  "peers_gone",
  "packets_sent",
  "bytes_sent",
];
