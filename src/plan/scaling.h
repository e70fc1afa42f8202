#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::plan {

/// One kind of connection. Bandwidth is what one direction carries, as it is measured: not the
/// number on the card.
struct Link {
  double bytes_per_second = 0;  ///< 0 = so fast that it does not count
  double latency_seconds = 0;   ///< of one message
};

/// How an all-reduce is cut into messages. n bytes, p processes, B bytes/s, a seconds a message:
///
///     ring               2 (p - 1) a + 2 (p - 1) / p n / B
///     halving_doubling   2 ceil(log2 p) a + 2 (p - 1) / p n / B
///
/// (Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in
/// MPICH"; Goyal et al. 2017, arXiv:1706.02677, section 4, has both for gradients.)
/// Over several hosts a ring goes once around all processes and is as slow as its slowest link;
/// halving and doubling is done within each host first, so that of the n bytes that each host sends
/// and receives 2 (h - 1) / h pass its one connection to the h - 1 others.
enum class Algorithm { kRing, kHalvingDoubling };

/// `dist.strategy`.
///
/// all_reduce: one all-reduce of the gradients. sharded: its two halves; the gradients' half can
/// hide behind backward, the parameters' half (fp32) comes after the step, of which each process
/// does its part. parameter_server: gradients are reduced to process 0, which steps and broadcasts
/// fp32 parameters; both in trees, whose chunks follow each other: n / B + ceil(log2 p) a each.
enum class Strategy { kAllReduce, kSharded, kParameterServer };

/// What is trained, on what. All times are of one process alone unless said otherwise.
struct Setup {
  // one micro-batch
  double compute_seconds = 0;       ///< forward and backward of a micro-batch
  double backward_share = 2.0 / 3;  ///< of it: two products where forward has one
  double optimizer_seconds = 0;     ///< of an update
  double units = 0;  ///< of work of a micro-batch, such as target tokens; 0 = not known
  /// Standard deviation over mean of a micro-batch's time. The slowest of p processes is waited
  /// for: with m micro-batches each it takes 1 + jitter / sqrt(m) times the expected largest of p
  /// standard normal numbers (Blom 1958) as long as the average.
  double jitter = 0;
  /// Slowdown of compute by each other process on the same host (caches, memory, clock).
  double contention = 0;

  // the batch
  int64_t micro_batches = 1;  ///< of an update; over all processes, unless `weak`
  bool cut = true;            ///< those left over are shared, as data::RankBatches does
  bool weak = false;          ///< each process has `micro_batches`: the batch grows with processes

  // what is sent
  double gradient_bytes = 0;   ///< as they are sent, compressed or not
  double parameter_bytes = 0;  ///< fp32; only of sharded and parameter_server
  double bucket_bytes = 2'097'152;
  /// Shares of the gradient that are ready as soon as backward begins, an output projection, and
  /// only when it ends, a table that the encoder reads. The rest becomes ready evenly over
  /// backward.
  double first_share = 0, late_share = 0;
  /// What each process brings of looked-up rows, sent by all to all behind the buckets: on a CPU,
  /// of a tied table whose dense gradient has left first (parallel/embedding_gradients.h).
  double row_bytes = 0;
  bool overlap = true;
  /// Compute lost per second of communication that hides behind it: on a CPU, cores and memory
  /// bandwidth that sending and adding take.
  double overlap_cost = 0;

  // the machines
  Strategy strategy = Strategy::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  int64_t per_host = 0;  ///< processes of a host; 0 = all on one
  Link within, between;  ///< two processes of a host; two hosts
};

/// Time of one update on so many processes.
struct Prediction {
  int64_t processes = 1;
  double compute_seconds = 0;        ///< of the slowest process, optimizer included
  double communication_seconds = 0;  ///< as if nothing else ran
  int64_t buckets = 0;               ///< of gradients
  double latency_seconds = 0;  ///< part of communication that buckets without bytes would take
  double exposed_seconds = 0;  ///< part of it that compute waits for
  double step_seconds = 0;
  /// max(compute, communication): what an overlap without seams would reach.
  double limit_seconds = 0;
  double units_per_second = 0;  ///< of all processes; 0 = not known
  double speedup = 1;           ///< work per second over that of one process
  double efficiency = 1;        ///< speedup / processes
};

/// Seconds of one all-reduce of `bytes` over `processes`, alone on the links of `setup`.
double all_reduce_seconds(const Setup& setup, double bytes, int64_t processes);

/// Expected largest of n standard normal numbers, by Blom's approximation: 0 for one, 0.56 for two.
double expected_largest(int64_t n);

/// Predicts an update on `processes` processes. Micro-batches that do not divide evenly, cut or
/// not, make some processes wait. Throws std::invalid_argument when processes < 1, a time or size
/// is negative or not finite, or shares are outside [0, 1] or together above 1.
Prediction predict(const Setup& setup, int64_t processes);

/// Whether most of the communication is the latency of several buckets, so that fewer and larger
/// ones would be faster.
bool mostly_latency(const Prediction& prediction);

/// predict() for 1, 2, 3, 4 and so on up to 16, then powers of two and the numbers half-way between
/// them, and `world_size` itself.
std::vector<Prediction> predict_up_to(const Setup& setup, int64_t world_size);

}  // namespace stretto::plan
