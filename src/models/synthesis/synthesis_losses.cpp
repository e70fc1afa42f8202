#include "models/synthesis/synthesis_losses.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/packed.h"

namespace stretto::models {
namespace {

/// Mean over the numbers of each row, summed over rows.
at::Tensor frame_distance(const at::Tensor& got, const at::Tensor& want, const std::string& kind) {
  const at::Tensor difference = got - want;
  at::Tensor rows;
  if (kind == "mse") {
    rows = difference.square();
  } else if (kind == "l1") {
    rows = difference.abs();
  } else {
    rows = difference.square() + difference.abs();
  }
  return rows.mean(1).sum();
}

/// 1 for the last frame of each sentence, else 0; [N] like `like`.
at::Tensor last_frames(const kernels::Offsets& offsets, const at::Tensor& like) {
  // A sentence without frames has no last one.
  const at::Tensor has_frames = at::diff(offsets.values.to(at::kLong)).gt(0);
  const at::Tensor places = last_places(offsets).masked_select(has_frames);
  return at::zeros_like(like).index_fill(0, places, 1);
}

/// The stated cross entropy of each frame, summed.
at::Tensor stop_loss(const at::Tensor& logits, const at::Tensor& is_last, double positive_weight) {
  const at::Tensor terms =
      positive_weight * is_last * at::softplus(-logits) + (1 - is_last) * at::softplus(logits);
  return terms.sum();
}

/// How much attention of a step to a symbol costs, in the order of the blocks; double.
at::Tensor guide(const kernels::Offsets& steps, const kernels::Offsets& symbols,
                 const kernels::Offsets& frames, int64_t reduction, double width) {
  const auto host = [](const kernels::Offsets& offsets) {
    return offsets.values.to(at::kCPU, at::kLong).contiguous();
  };
  const at::Tensor step = host(steps), symbol = host(symbols), frame = host(frames);
  const auto count = [](const at::Tensor& bounds, int64_t i) {
    return bounds.const_data_ptr<int64_t>()[i + 1] - bounds.const_data_ptr<int64_t>()[i];
  };
  std::vector<at::Tensor> blocks{at::empty({0}, at::kDouble)};
  for (int64_t i = 0; i + 1 < step.numel(); ++i) {
    const int64_t rows = count(step, i), columns = count(symbol, i);
    const at::Tensor at_step = at::arange(rows, at::kDouble) / static_cast<double>(rows);
    const at::Tensor at_symbol = at::arange(columns, at::kDouble) / static_cast<double>(columns);
    const at::Tensor apart = (at_symbol.unsqueeze(0) - at_step.unsqueeze(1)).square();
    // A step counts for each frame that it writes, and the last one may write fewer.
    at::Tensor written = at::full({rows}, static_cast<double>(reduction), at::kDouble);
    if (rows > 0) written[rows - 1] = count(frame, i) - (rows - 1) * reduction;
    blocks.push_back(((1 - (apart / (-2 * width * width)).exp()) * written.unsqueeze(1)).flatten());
  }
  return at::cat(blocks);
}

void add_guided(SynthesisLosses& losses, const SynthesisOutput& output,
                const nn::PackedRows& targets, const kernels::Offsets& text,
                const SynthesisLossOptions& options) {
  TORCH_CHECK(output.attention.defined(),
              "[synthesis] guided attention needs attention weights: ask forward() for "
              "attention_for(options)");
  const at::Tensor factors =
      guide(output.steps, text, targets.offsets, output.reduction, options.guided_width)
          .to(output.attention.options());
  losses.guided = options.guided_attention * (output.attention * factors).sum();
  losses.total = losses.total + losses.guided;
}

}  // namespace

SynthesisLosses synthesis_losses(const SynthesisOutput& output, const nn::PackedRows& targets,
                                 const kernels::Offsets& text, const FrameParts& parts,
                                 const SynthesisLossOptions& options) {
  const at::Tensor all = targets.values.to(output.after.scalar_type());
  TORCH_CHECK(all.dim() == 2 && all.size(1) == parts.width(), "[synthesis] targets must be [N, ",
              parts.width(), "], got ", all.sizes());
  const at::Tensor first = all.narrow(1, 0, parts.decoder_width());
  SynthesisLosses losses;
  losses.frames = frame_distance(output.after, first, options.kind);
  if (!output.after.is_same(output.before)) {
    losses.frames = losses.frames + frame_distance(output.before, first, options.kind);
  }
  losses.total = losses.frames;
  if (parts.has_both()) {
    losses.magnitude = options.magnitude_weight *
                       frame_distance(output.magnitude,
                                      all.narrow(1, parts.num_mels, parts.num_bins), options.kind);
    losses.total = losses.total + losses.magnitude;
  }
  const at::Tensor is_last = last_frames(targets.offsets, output.stop_logits.detach());
  losses.stop =
      options.stop_weight * stop_loss(output.stop_logits, is_last, options.stop_positive_weight);
  losses.total = losses.total + losses.stop;
  if (options.guided_attention > 0) add_guided(losses, output, targets, text, options);
  const at::NoGradGuard no_grad;
  losses.mel_l1 = (output.after - first).abs().mean(1).sum();
  losses.stop_errors = output.stop_logits.gt(0).ne(is_last.gt(0)).sum();
  return losses;
}

AttentionShape attention_shape(std::span<const float> weights, int64_t symbols) {
  const auto steps = static_cast<int64_t>(weights.size()) / symbols;
  const double half_width = std::max(1.0, 0.1 * static_cast<double>(symbols));
  const double slope = static_cast<double>(symbols) / static_cast<double>(steps);
  double inside = 0, sum = 0;
  int64_t in_order = 0, before = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const float* row = weights.data() + step * symbols;
    const double centre = (static_cast<double>(step) + 0.5) * slope - 0.5;
    for (int64_t symbol = 0; symbol < symbols; ++symbol) {
      sum += row[symbol];
      if (std::abs(static_cast<double>(symbol) - centre) <= half_width) inside += row[symbol];
    }
    const int64_t likeliest = std::max_element(row, row + symbols) - row;
    if (step > 0 && likeliest >= before && likeliest <= before + 2) ++in_order;
    before = likeliest;
  }
  return {
      .diagonality = sum > 0 ? inside / sum : 0,
      .monotonic = steps > 1 ? static_cast<double>(in_order) / static_cast<double>(steps - 1) : 1};
}

}  // namespace stretto::models
