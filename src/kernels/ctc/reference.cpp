#include "kernels/ctc/reference.h"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

#include <algorithm>
#include <optional>

namespace stretto::kernels::reference {
namespace {

at::Tensor lengths_of(const Offsets& offsets) {
  return at::diff(offsets.values.to(at::kLong));
}

/// The sequence of each of so many rows. The stated number spares a wait for a GPU.
at::Tensor sequence_of_rows(const at::Tensor& lengths, int64_t rows) {
  return at::repeat_interleave(lengths, std::optional<int64_t>(rows));
}

/// For each sequence how often a label follows itself, int64 [B].
at::Tensor num_repeats(const at::Tensor& labels, const at::Tensor& lengths) {
  const int64_t count = labels.size(0);
  const at::Tensor repeats = at::zeros_like(lengths);
  if (count < 2) return repeats;
  const at::Tensor sequence = sequence_of_rows(lengths, count);
  const auto follows_its_like = [&](const at::Tensor& numbers) {
    return numbers.slice(0, 1).eq(numbers.slice(0, 0, count - 1));
  };
  const at::Tensor again = follows_its_like(labels).logical_and(follows_its_like(sequence));
  return repeats.index_add(0, sequence.slice(0, 1), again.to(at::kLong));
}

}  // namespace

CtcLosses ctc_loss(const at::Tensor& scores, const CtcTargets& targets) {
  const int64_t num_frames = scores.size(0), classes = scores.size(1);
  const at::Tensor frames = lengths_of(targets.frames), labels = lengths_of(targets.label_offsets);
  const int64_t sequences = frames.size(0);
  const int64_t longest = std::max<int64_t>(1, targets.frames.max_length);
  const at::Tensor possible = frames.ge(labels + num_repeats(targets.labels, labels));
  if (sequences == 0) return {.each = scores.sum(1).slice(0, 0, 0), .possible = possible};

  const at::Tensor sequence = sequence_of_rows(frames, num_frames);
  const at::Tensor first = targets.frames.values.to(at::kLong).slice(0, 0, sequences);
  const at::Tensor place =
      at::arange(num_frames, first.options()) - first.index_select(0, sequence);
  const at::Tensor log_p = at::log_softmax(scores, 1);
  // Each row has a place of its own, so that nothing is added up in backward.
  const at::Tensor padded = at::zeros({longest * sequences, classes}, log_p.options())
                                .index_copy(0, place * sequences + sequence, log_p)
                                .view({longest, sequences, classes});
  // A sequence without frames gets one whose logarithms are 0: it costs nothing without labels, and
  // is impossible with some.
  const at::Tensor each = at::ctc_loss(padded, targets.labels, frames.clamp_min(1), labels,
                                       targets.blank, at::Reduction::None, /*zero_infinity=*/true);
  return {.each = each.masked_fill(possible.logical_not(), 0), .possible = possible};
}

}  // namespace stretto::kernels::reference
