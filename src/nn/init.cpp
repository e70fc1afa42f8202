#include "nn/init.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "nn/initialisers.h"

namespace stretto::nn {
namespace {

at::Tensor unset_matrix(int64_t rows, int64_t cols, at::Device device) {
  return at::empty({rows, cols}, at::dtype(at::kFloat).device(device));
}

/// Fills a matrix row by row; `draw` is called with the row's own stream.
template <class Draw>
at::Tensor fill_rows(int64_t rows, int64_t cols, uint64_t key, at::Device device, Draw draw) {
  at::Tensor matrix = at::empty({rows, cols}, at::kFloat);
  float* data = matrix.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      RandomStream stream(key, static_cast<uint64_t>(row));
      for (int64_t col = 0; col < cols; ++col) {
        data[row * cols + col] = static_cast<float>(draw(stream));
      }
    }
  });
  return matrix.to(device);
}

}  // namespace

Init Init::unset(at::Device device) {
  Init init(0, device);
  init.draws_ = false;
  return init;
}

Init Init::with_rules(std::vector<InitRule> rules) const {
  Init ruled = *this;
  ruled.rules_ = std::make_shared<const std::vector<InitRule>>(std::move(rules));
  return ruled;
}

Init Init::child(const std::string& name) const {
  Init inner = *this;
  inner.path_ = path_.empty() ? name : path_ + "." + name;
  return inner;
}

uint64_t Init::key(const std::string& name) const {
  return mix64(seed_, xxh3_64(child(name).path_));
}

const InitRule* Init::rule_of(const std::string& name) const {
  return rules_ ? find_rule(*rules_, child(name).path_) : nullptr;
}

at::Tensor Init::by_rule(const InitRule& rule, const std::string& name, int64_t rows, int64_t cols,
                         int64_t parts) const {
  return draw(rule, {.rows = rows, .columns = cols, .parts = parts}, key(name)).to(device_);
}

at::Tensor Init::xavier_uniform(const std::string& name, int64_t rows, int64_t cols, int64_t parts,
                                double gain) const {
  if (!draws()) return unset_matrix(rows, cols, device_);
  if (const InitRule* rule = rule_of(name)) return by_rule(*rule, name, rows, cols, parts);
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(cols + rows / parts));
  return fill_rows(rows, cols, key(name), device_, [bound](RandomStream& stream) {
    return bound * (2.0 * stream.uniform() - 1.0);
  });
}

at::Tensor Init::xavier_uniform(const std::string& name, const std::vector<int64_t>& part_rows,
                                int64_t cols, double gain) const {
  const int64_t rows = std::accumulate(part_rows.begin(), part_rows.end(), int64_t{0});
  if (!draws()) return unset_matrix(rows, cols, device_);
  if (const InitRule* rule = rule_of(name)) {
    std::vector<at::Tensor> parts;
    for (const int64_t part : part_rows) {
      const uint64_t of_part = mix64(key(name), parts.size());
      parts.push_back(draw(*rule, {.rows = part, .columns = cols, .parts = 1}, of_part));
    }
    return at::cat(parts).to(device_);
  }
  const at::Tensor matrix = fill_rows(rows, cols, key(name), at::kCPU, [](RandomStream& stream) {
    return 2.0 * stream.uniform() - 1.0;
  });
  int64_t row = 0;
  for (const int64_t part : part_rows) {
    const double bound = gain * std::sqrt(6.0 / static_cast<double>(cols + part));
    matrix.narrow(0, row, part).mul_(bound);
    row += part;
  }
  return matrix.to(device_);
}

at::Tensor Init::normal(const std::string& name, int64_t rows, int64_t cols, double stddev) const {
  if (!draws()) return unset_matrix(rows, cols, device_);
  if (const InitRule* rule = rule_of(name)) return by_rule(*rule, name, rows, cols, /*parts=*/1);
  return fill_rows(rows, cols, key(name), device_,
                   [stddev](RandomStream& stream) { return stddev * stream.normal(); });
}

at::Tensor Init::vector(const std::string& name, const at::Tensor& values) const {
  const InitRule* rule = rule_of(name);
  if (rule == nullptr || !draws()) return values;
  if (needs_matrix(rule->distribution)) {
    throw Error(ExitCode::kUsage,
                "model.init: `" + rule->pattern + "` reaches the vector `" + child(name).path_ +
                    "`, and its initialiser needs rows and columns",
                "name matrices alone, or put a rule for vectors before it");
  }
  return by_rule(*rule, name, 1, values.numel(), /*parts=*/1).view({-1});
}

at::Tensor Init::constant(const std::string& name, int64_t size, double value) const {
  return vector(name, buffer(size, value));
}

at::Tensor Init::buffer(int64_t size, double value) const {
  return at::full({size}, value, at::dtype(at::kFloat).device(device_));
}

}  // namespace stretto::nn
