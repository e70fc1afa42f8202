#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/loss/fused_projection.h"
#include "kernels/loss/r_drop.h"
#include "kernels/loss/smoothing.h"

namespace stretto::kernels::r_drop {
namespace {

/// The losses of each token and, in place of the logits of both passes, their gradients.
std::vector<cpu::PairSums> pairs_of_loss(at::Tensor& first, at::Tensor& second,
                                         const at::Tensor& targets, const SmoothingWeights& weights,
                                         float pull, bool gradient) {
  const int64_t rows = first.size(0), classes = first.size(1);
  std::vector<cpu::PairSums> sums(static_cast<size_t>(rows));
  float *a = first.data_ptr<float>(), *b = second.data_ptr<float>();
  const int64_t* target = targets.const_data_ptr<int64_t>();
  const auto each = static_cast<float>(weights.each), extra = static_cast<float>(weights.extra);
  at::parallel_for(0, rows, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      sums[static_cast<size_t>(i)] = cpu::table().pair_loss_row(
          a + i * classes, b + i * classes, {classes, target[i], each, extra}, pull, gradient);
    }
  });
  return sums;
}

}  // namespace

Losses of_fp32_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                    const RDrop& options, const at::Tensor& bias, bool want_gradient) {
  const int64_t tokens = targets.size(0), num_classes = options.num_classes;
  const SmoothingWeights weights(options.smoothing, num_classes);
  const fused::Projection projection(
      weight.slice(0, 0, num_classes),
      {.rows = x.size(0), .slope_scale = slope_scale(options), .backward = want_gradient});
  const at::Tensor shift = bias.defined() ? bias.slice(0, 0, num_classes) : bias;
  Losses out;
  if (want_gradient) {
    out.dx = is_half(ComputeScope::current()) ? at::zeros_like(x) : at::empty_like(x);
    out.dweight = at::zeros_like(weight);
    if (bias.defined()) out.dbias = at::zeros_like(bias);
  }
  // As many logits as one pass alone would have at a time.
  constexpr int64_t kRows = fused::kLossRows / 2;
  const at::Tensor buffer = at::empty({2, std::min(kRows, tokens), num_classes}, x.options());
  cpu::PairSums sums{};
  for (int64_t begin = 0; begin < tokens; begin += kRows) {
    const int64_t end = std::min(begin + kRows, tokens);
    std::array<at::Tensor, 2> logits;
    for (int64_t pass = 0; pass < 2; ++pass) {
      at::Tensor& own = logits[static_cast<size_t>(pass)];
      own = buffer[pass].slice(0, 0, end - begin);
      projection.logits(x.slice(0, pass * tokens + begin, pass * tokens + end), shift, own);
    }
    cpu::PairSums block{};
    for (const cpu::PairSums& pair :
         pairs_of_loss(logits[0], logits[1], targets.slice(0, begin, end), weights,
                       static_cast<float>(options.alpha / 4), want_gradient)) {
      block.nll += pair.nll;
      block.all += pair.all;
      block.kl += pair.kl;
    }
    sums.nll += block.nll;
    sums.all += block.all;
    sums.kl += block.kl;
    if (!want_gradient) continue;
    at::Tensor dweight = out.dweight.slice(0, 0, num_classes);
    for (int64_t pass = 0; pass < 2; ++pass) {
      const int64_t from = pass * tokens + begin, to = pass * tokens + end;
      at::Tensor& slopes = logits[static_cast<size_t>(pass)];
      if (out.dbias.defined()) out.dbias.slice(0, 0, num_classes).add_(gemm::column_sums(slopes));
      at::Tensor dx = out.dx.slice(0, from, to);
      projection.gradients(slopes, x.slice(0, from, to), dx, dweight);
    }
  }
  out.loss = fused::scalar_of(
      (weights.extra * sums.nll + weights.each * sums.all + options.alpha * sums.kl) / 2);
  out.nll = fused::scalar_of(sums.nll / 2);
  out.kl = fused::scalar_of(sums.kl);
  return out;
}

}  // namespace stretto::kernels::r_drop
