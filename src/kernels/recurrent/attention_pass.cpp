#include "kernels/recurrent/attention_pass.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "kernels/rounding.h"

namespace stretto::kernels {
namespace {

std::vector<int64_t> begins_of(const at::Tensor& offsets) {
  const at::Tensor host = offsets.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

}  // namespace

AttentiveWeights plain_score(AttentiveWeights weights, Score score) {
  if (score != Score::kNormedAdditive) return weights;
  weights.score = weights.gain.reshape({}) * weights.score / weights.score.norm();
  weights.gain = at::Tensor();
  return weights;
}

PreparedMemory::PreparedMemory(const Memory& memory, Score score, Compute compute)
    : keys(memory.keys.contiguous()),
      values(rounded(memory.values.contiguous(), compute)),
      begins(begins_of(memory.offsets.values)) {
  if (!is_additive(score)) {
    keys = rounded(keys, compute);
    return;
  }
  constexpr int64_t kRows = 4;
  powers = at::empty_like(keys);
  peaks = at::empty({keys.size(0)}, keys.options());
  const float* from = keys.const_data_ptr<float>();
  float *to = powers.data_ptr<float>(), *tops = peaks.data_ptr<float>();
  at::parallel_for(0, keys.size(0), kRows, [&](int64_t begin, int64_t end) {
    cpu::table().cells.powers(from, to, tops, begin, end, keys.size(1));
  });
}

PreparedMemory::PreparedMemory(at::Tensor made_keys, at::Tensor made_values, at::Tensor made_powers,
                               at::Tensor made_peaks, const at::Tensor& offsets)
    : keys(std::move(made_keys)),
      values(std::move(made_values)),
      powers(std::move(made_powers)),
      peaks(std::move(made_peaks)),
      begins(begins_of(offsets)) {}

cpu::AttendRow attend_row(const PreparedMemory& memory, const Scorer& scorer, int64_t source,
                          const float* query, float* weights) {
  const int64_t row = memory.begin(source), width = memory.key_width();
  const bool additive = memory.powers.defined();
  return {
      .query = query,
      .keys = memory.keys.const_data_ptr<float>() + row * width,
      .powers = additive ? memory.powers.const_data_ptr<float>() + row * width : nullptr,
      .peaks = additive ? memory.peaks.const_data_ptr<float>() + row : nullptr,
      .values = memory.values.const_data_ptr<float>() + row * memory.value_width(),
      .score = scorer.score.defined() ? scorer.score.const_data_ptr<float>() : nullptr,
      .gain = scorer.gain,
      .count = memory.count(source),
      .width = width,
      .value_width = memory.value_width(),
      .compute = scorer.compute,
      .weights = weights,
  };
}

at::Tensor blend_rows(const PreparedMemory& memory, const at::Tensor& factors,
                      const at::Tensor& rows, const std::vector<int64_t>& begins, Compute compute) {
  const int64_t sources = static_cast<int64_t>(begins.size()) - 1, columns = rows.size(1);
  std::vector<int64_t> blocks{0};
  for (int64_t i = 0; i < sources; ++i) {
    const size_t at = static_cast<size_t>(i);
    blocks.push_back(blocks.back() + (begins[at + 1] - begins[at]) * memory.count(i));
  }
  at::Tensor out = at::empty({memory.begins.back(), columns}, rows.options());
  const float *a = factors.const_data_ptr<float>(), *b = rows.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, sources, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t at = static_cast<size_t>(i);
      cpu::table().cells.blend({.a = a + blocks[at],
                                .b = b + begins[at] * columns,
                                .rows = memory.count(i),
                                .depth = begins[at + 1] - begins[at],
                                .columns = columns,
                                .out = to + memory.begin(i) * columns});
    }
  });
  round_(out, compute);
  return out;
}

}  // namespace stretto::kernels
