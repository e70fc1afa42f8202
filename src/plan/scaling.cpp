#include "plan/scaling.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "data/rank_batches.h"

namespace stretto::plan {
namespace {

double transfer(const Link& link, double bytes) {
  return link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0;
}

double log2_ceil(int64_t n) {
  double steps = 0;
  for (int64_t reach = 1; reach < n; reach *= 2) ++steps;
  return steps;
}

/// How the processes lie on hosts: full hosts, as a launcher fills them.
struct Layout {
  int64_t per_host = 1, hosts = 1;

  Layout(const Setup& setup, int64_t processes)
      : per_host(setup.per_host > 0 ? std::min(setup.per_host, processes) : processes),
        hosts((processes + per_host - 1) / per_host) {}
};

const Link& slower(const Link& a, const Link& b) {
  if (a.bytes_per_second <= 0) return b;
  if (b.bytes_per_second <= 0) return a;
  return a.bytes_per_second < b.bytes_per_second ? a : b;
}

// One half of an all-reduce: reduce-scatter or all-gather.
double half_seconds(const Setup& setup, double bytes, int64_t processes) {
  if (processes < 2) return 0;
  const Layout layout(setup, processes);
  const auto part = [](int64_t n) { return double(n - 1) / double(n); };
  if (setup.algorithm == Algorithm::kHalvingDoubling) {
    return log2_ceil(layout.per_host) * setup.within.latency_seconds +
           part(layout.per_host) * transfer(setup.within, bytes) +
           log2_ceil(layout.hosts) * setup.between.latency_seconds +
           part(layout.hosts) * transfer(setup.between, bytes);
  }
  // Each step of the ring waits for its slowest link.
  const Link& link = layout.hosts > 1 ? slower(setup.within, setup.between) : setup.within;
  const double latency = layout.hosts > 1
                             ? std::max(setup.within.latency_seconds, setup.between.latency_seconds)
                             : setup.within.latency_seconds;
  return double(processes - 1) * latency + part(processes) * transfer(link, bytes);
}

// A pipelined tree from or to process 0.
double tree_seconds(const Setup& setup, double bytes, int64_t processes) {
  if (processes < 2) return 0;
  const Layout layout(setup, processes);
  const bool far = layout.hosts > 1;
  return log2_ceil(layout.per_host) * setup.within.latency_seconds +
         log2_ceil(layout.hosts) * setup.between.latency_seconds +
         transfer(far ? slower(setup.within, setup.between) : setup.within, bytes);
}

// Seconds for `bytes` of gradients: what can hide behind backward.
double gradient_seconds(const Setup& setup, double bytes, int64_t processes) {
  switch (setup.strategy) {
    case Strategy::kSharded:
      return half_seconds(setup, bytes, processes);
    case Strategy::kParameterServer:
      return tree_seconds(setup, bytes, processes);
    case Strategy::kAllReduce:
      break;
  }
  return 2 * half_seconds(setup, bytes, processes);
}

// Seconds after the optimizer's step, when parameters have to come back.
double parameter_seconds(const Setup& setup, int64_t processes) {
  switch (setup.strategy) {
    case Strategy::kSharded:
      return half_seconds(setup, setup.parameter_bytes, processes);
    case Strategy::kParameterServer:
      return tree_seconds(setup, setup.parameter_bytes, processes);
    case Strategy::kAllReduce:
      break;
  }
  return 0;
}

// Each process brings its own rows, and gets those of all.
double row_seconds(const Setup& setup, int64_t processes) {
  if (setup.row_bytes == 0) return 0;
  return half_seconds(setup, double(processes) * setup.row_bytes, processes);
}

// Buckets of equal size leave one after the other, each not before it is ready. Those of the first
// part are ready when backward begins, those of the late part at its end, and those between them at
// equal distances. The last one is through at the largest of "ready(j), then buckets j..last",
// which is linear in j on each part: only its ends count.
struct Buckets {
  double count = 0, seconds = 0;  ///< of one

  Buckets(const Setup& setup, int64_t processes)
      : count(std::max(1.0, std::ceil(setup.gradient_bytes / setup.bucket_bytes))),
        seconds(gradient_seconds(setup, setup.gradient_bytes / count, processes)) {}

  double total() const { return count * seconds; }

  /// Seconds from the end of a backward of `backward` seconds to the end of the last bucket.
  double after_backward(double backward, const Setup& setup) const {
    const double first = std::floor(count * setup.first_share);
    const double early = std::floor(count * (1 - setup.late_share));
    double end = (count - early) * seconds;
    if (first >= 1) end = std::max(end, count * seconds - backward);
    if (early - first < 1) return end;
    const double next_ready = backward / (early - first) - backward;
    end = std::max(end, next_ready + (count - first) * seconds);
    return std::max(end, (count - early + 1) * seconds);
  }
};

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("[scaling] ") + what);
}

bool amount(double value) {
  return std::isfinite(value) && value >= 0;
}
bool share(double value) {
  return value >= 0 && value <= 1;
}

void check(const Setup& s, int64_t processes) {
  require(processes >= 1, "at least one process");
  require(s.micro_batches >= 1, "at least one micro-batch");
  require(s.per_host >= 0, "processes of a host must not be negative");
  for (const double value :
       {s.compute_seconds, s.optimizer_seconds, s.units, s.jitter, s.contention, s.gradient_bytes,
        s.parameter_bytes, s.row_bytes, s.overlap_cost, s.within.bytes_per_second,
        s.within.latency_seconds, s.between.bytes_per_second, s.between.latency_seconds}) {
    require(amount(value), "times, sizes and speeds must be finite and not negative");
  }
  require(s.bucket_bytes > 0, "bucket_bytes must be above 0");
  require(share(s.backward_share) && share(s.first_share) && share(s.late_share),
          "shares must be in [0, 1]");
  require(s.first_share + s.late_share <= 1 + 1e-9, "more than all is first or late");
}

// Rational approximation of the normal quantile (Acklam), relative error below 1.2e-9; p in (0, 1).
double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  if (p > 0.5) return -normal_quantile(1 - p);
  if (p < 0.02425) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

// Time of one process alone for the update that `processes` share.
double alone_seconds(const Setup& s, int64_t processes) {
  const double work = double(s.micro_batches) * (s.weak ? double(processes) : 1.0);
  const double updates = s.weak ? double(processes) : 1.0;  // one process makes as many steps
  return work * s.compute_seconds + updates * s.optimizer_seconds;
}

}  // namespace

double expected_largest(int64_t n) {
  if (n < 2) return 0;
  const double count = double(n);
  return normal_quantile((count - 0.375) / (count + 0.25));
}

double all_reduce_seconds(const Setup& setup, double bytes, int64_t processes) {
  check(setup, processes);
  return 2 * half_seconds(setup, bytes, processes);
}

Prediction predict(const Setup& s, int64_t processes) {
  check(s, processes);
  const Layout layout(s, processes);
  const double rounds =
      s.weak ? double(s.micro_batches) : data::rounds_of_update(s.micro_batches, processes, s.cut);
  const double last = rounds - std::ceil(rounds) + 1;  // behind whose backward gradients hide
  const double slowest =
      1 + s.jitter / std::sqrt(std::max(1.0, rounds)) * expected_largest(processes);
  const double one = s.compute_seconds * (1 + s.contention * double(layout.per_host - 1)) * slowest;
  const bool shares_step = s.strategy == Strategy::kSharded;
  const double optimizer = s.optimizer_seconds / (shares_step ? double(processes) : 1.0);

  Prediction result{.processes = processes};
  result.compute_seconds = rounds * one + optimizer;
  const double returned = parameter_seconds(s, processes);
  double sent = 0, waited = 0;
  if (processes > 1 && s.gradient_bytes > 0) {
    const Buckets buckets(s, processes);
    sent = buckets.total();
    result.buckets = int64_t(buckets.count);
    result.latency_seconds = buckets.count * gradient_seconds(s, 0, processes);
    waited = s.overlap ? buckets.after_backward(s.backward_share * one * last, s) : sent;
    const double rows = row_seconds(s, processes);
    sent += rows;
    waited += rows;
  }
  result.communication_seconds = sent + returned;
  result.exposed_seconds = waited + returned;
  result.compute_seconds += s.overlap_cost * (sent - waited);
  result.step_seconds = result.compute_seconds + result.exposed_seconds;
  result.limit_seconds = std::max(result.compute_seconds, result.communication_seconds);
  if (result.step_seconds > 0) {
    const double batches = double(s.micro_batches) * (s.weak ? double(processes) : 1.0);
    result.units_per_second = batches * s.units / result.step_seconds;
    result.speedup = alone_seconds(s, processes) / result.step_seconds;
    result.efficiency = result.speedup / double(processes);
  }
  return result;
}

bool mostly_latency(const Prediction& prediction) {
  return prediction.buckets > 1 &&
         prediction.latency_seconds > prediction.communication_seconds / 2;
}

std::vector<Prediction> predict_up_to(const Setup& setup, int64_t world_size) {
  check(setup, world_size);
  std::vector<int64_t> sizes;
  for (int64_t n = 1; n <= std::min<int64_t>(world_size, 16); ++n) sizes.push_back(n);
  for (int64_t n = 16; n < world_size; n *= 2) {
    for (const int64_t next : {n / 2 * 3, n * 2}) {
      if (next < world_size) sizes.push_back(next);
    }
  }
  if (sizes.back() != world_size) sizes.push_back(world_size);
  std::vector<Prediction> list;
  for (const int64_t n : sizes) list.push_back(predict(setup, n));
  return list;
}

}  // namespace stretto::plan
