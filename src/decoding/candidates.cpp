#include "decoding/candidates.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "decoding/likeliest_tokens.h"

namespace stretto::decoding {
namespace {

std::vector<Candidate> best_of_row(std::span<const float> row, int64_t lane, int64_t count) {
  std::vector<Candidate> best;
  for (const int64_t token : likeliest_tokens(row, static_cast<size_t>(count))) {
    const float value = row[static_cast<size_t>(token)];
    best.push_back({lane, token, value, value});
  }
  return best;
}

std::vector<Candidate> best_on_device(const at::Tensor& values, const at::Tensor& tokens,
                                      int64_t lane) {
  std::vector<Candidate> row;
  for (int64_t i = 0; i < values.size(1); ++i) {
    const float value = values.const_data_ptr<float>()[lane * values.size(1) + i];
    const int64_t token = tokens.const_data_ptr<int64_t>()[lane * values.size(1) + i];
    if (value > kNever) row.push_back({lane, token, value, value});
  }
  return row;
}

}  // namespace

bool better(const Candidate& a, const Candidate& b) {
  if (a.log_prob != b.log_prob) return a.log_prob > b.log_prob;
  return a.lane != b.lane ? a.lane < b.lane : a.token < b.token;
}

std::vector<std::vector<Candidate>> likeliest(const at::Tensor& log_probs, int64_t count) {
  const int64_t lanes = log_probs.size(0), vocab = log_probs.size(1);
  count = std::min(count, vocab);
  std::vector<std::vector<Candidate>> rows(lanes);
  if (!log_probs.is_cpu()) {
    const auto [values, tokens] = log_probs.topk(count, 1);
    const at::Tensor host_values = values.cpu(), host_tokens = tokens.cpu();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      rows[lane] = best_on_device(host_values, host_tokens, lane);
    }
    return rows;
  }
  const at::Tensor dense = log_probs.contiguous();
  const float* data = dense.const_data_ptr<float>();
  at::parallel_for(0, lanes, 4, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      rows[lane] = best_of_row({data + lane * vocab, static_cast<size_t>(vocab)}, lane, count);
    }
  });
  return rows;
}

std::vector<int64_t> repeated_ngram_ends(std::span<const int64_t> history, int64_t order) {
  std::vector<int64_t> ends;
  const auto length = static_cast<int64_t>(history.size());
  if (order <= 0 || length < order) return ends;
  const auto tail = history.last(order - 1);
  for (int64_t start = 0; start + order <= length; ++start) {
    if (std::equal(tail.begin(), tail.end(), history.begin() + start)) {
      ends.push_back(history[start + order - 1]);
    }
  }
  return ends;
}

}  // namespace stretto::decoding
