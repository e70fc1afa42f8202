#include "plan/published.h"

#include "base/text.h"

namespace stretto::plan {
namespace {

constexpr double kGbit = 1e9 / 8;

// Speed-up of `many` processes over `few` on the same work, or of efficiencies when it grows.
double gain(const Setup& setup, int64_t few, int64_t many) {
  return predict(setup, many).speedup / predict(setup, few).speedup;
}

/// Ott et al. 2018, big Transformer in fp16: 128 micro-batches an update.
struct Fairseq {
  static constexpr double kOneHost = 4.6;  ///< speed-up of 8 GPUs before hosts were added
  static constexpr double kNoOverlap = 38.6, kOverlap = 44.7;
  static constexpr double kParameters = 209'911'808, kTable = 32'768.0 * 1024;
  // Seconds of an update on 8 GPUs, minutes over updates: of one micro-batch on each (the 2.9 row)
  // and of 16 (the 3.2 row). What 16 micro-batches pay once, each GPU of 128 pays for its one: the
  // step, the sum within a host, and the wait for the slowest of eight.
  static constexpr double kUpdateOf1 = 495.0 * 60 / 193'000, kUpdateOf16 = 447.0 * 60 / 13'700;
  static constexpr double kMicroBatch = (kUpdateOf16 - kUpdateOf1) / 15;

  static Setup setup(double gbit) {
    return {.compute_seconds = kMicroBatch,
            .optimizer_seconds = kUpdateOf1 - kMicroBatch,
            .micro_batches = 128,
            .gradient_bytes = 2 * kParameters,
            .bucket_bytes = 150e6,
            .late_share = kTable / kParameters,
            .overlap = false,
            .per_host = 8,
            .between = {.bytes_per_second = gbit * kGbit, .latency_seconds = 5e-6}};
  }

  static double speedup(const Setup& setup) { return kOneHost * gain(setup, 8, 128); }

  /// The link at which the row without overlap is met, by bisection.
  static double fitted_gbit() {
    double low = 1, high = 1000;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (speedup(setup(middle)) < kNoOverlap ? low : high) = middle;
    }
    return low;
  }
};

PublishedCase fairseq_without_overlap() {
  const Setup setup = Fairseq::setup(100);
  return {.what = "fairseq, 128 GPUs, no overlap: speed-up",
          .published = Fairseq::kNoOverlap,
          .predicted = Fairseq::speedup(setup),
          .free_input = "assumed: one link of 100 Gbit/s a host, used in full",
          .setup = setup};
}

PublishedCase fairseq_with_overlap() {
  const double gbit = Fairseq::fitted_gbit();
  Setup setup = Fairseq::setup(gbit);
  setup.overlap = true;
  return {.what = "fairseq, 128 GPUs, overlap: speed-up",
          .published = Fairseq::kOverlap,
          .predicted = Fairseq::speedup(setup),
          .free_input = "fitted on 38.6 without overlap: " + fixed(gbit, 0) + " Gbit/s",
          .setup = setup};
}

PublishedCase resnet() {
  constexpr double kUpdates = 90.0 * 1'281'167 / 256;  // epochs, images, batch of 8 GPUs
  constexpr double kSeconds = 29.0 * 3600 / kUpdates;
  const Setup setup{.compute_seconds = kSeconds,
                    .backward_share = 0.120 / kSeconds,
                    .weak = true,
                    .gradient_bytes = 100e6,
                    .algorithm = Algorithm::kHalvingDoubling,
                    .per_host = 8,
                    .between = {.bytes_per_second = 50 * kGbit, .latency_seconds = 50e-6}};
  return {.what = "ResNet-50, 8 to 256 GPUs: efficiency",
          .published = 0.90,
          .predicted = gain(setup, 8, 256) / (256.0 / 8),
          .free_input = "assumed: 50 Gbit/s, no process slower than another",
          .setup = setup};
}

/// BERT-base on SQuAD, 12 examples a GPU, fp32, 7 hours for two epochs of 88,000 on one K80.
Setup bert(int64_t micro_batches) {
  constexpr double kSeconds = 7.0 * 3600 / (2 * 88'000.0 / 12);
  constexpr double kBytes = 4 * 110e6;
  // Two GPUs of one host had an efficiency of 0.93: all bytes once each way in the rest.
  constexpr double kWithin = kBytes / (kSeconds * (1 / 0.93 - 1));
  return {.compute_seconds = kSeconds,
          .micro_batches = micro_batches,
          .weak = true,
          .gradient_bytes = kBytes,
          .bucket_bytes = 64e6,
          .overlap = false,
          .per_host = 8,
          .within = {.bytes_per_second = kWithin},
          .between = {.bytes_per_second = 10 * kGbit, .latency_seconds = 50e-6}};
}

PublishedCase bert_one_host() {
  const Setup setup = bert(1);
  return {.what = "BERT-base, 8 GPUs of one host: efficiency (published: above)",
          .published = 0.80,
          .predicted = predict(setup, 8).efficiency,
          .free_input = "fitted on 0.93 at 2 GPUs: " +
                        fixed(setup.within.bytes_per_second / 1e9, 1) + " GB/s in the host",
          .setup = setup};
}

PublishedCase bert_two_hosts() {
  const Setup setup = bert(2);
  return {.what = "BERT-base, 16 GPUs of two hosts: efficiency",
          .published = 0.83,
          .predicted = predict(setup, 16).efficiency,
          .free_input = "assumed: 10 Gbit/s between the hosts",
          .setup = setup};
}

}  // namespace

std::vector<PublishedCase> published_cases() {
  return {fairseq_without_overlap(), fairseq_with_overlap(), resnet(), bert_one_host(),
          bert_two_hosts()};
}

std::string published_table() {
  std::string text = "| case | published | model | error | free input |\n|---|---|---|---|---|\n";
  for (const auto& one : published_cases()) {
    const int decimals = one.published > 1 ? 1 : 2;
    const double percent = 100 * one.error();
    text += "| " + one.what + " | " + fixed(one.published, decimals) + " | " +
            fixed(one.predicted, decimals) + " | " + (percent < 0 ? "−" : "+") +
            fixed(percent < 0 ? -percent : percent, 1) + " % | " + one.free_input + " |\n";
  }
  return text;
}

}  // namespace stretto::plan
