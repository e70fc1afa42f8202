#include "nn/init.h"

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

Init Init::with_linear_rule(const InitRule& rule) const {
  Init ruled = *this;
  ruled.linear_rule_ = rule;
  return ruled;
}

Init Init::with_residual_rule(const InitRule& rule) const {
  Init ruled = *this;
  ruled.residual_rule_ = rule;
  return ruled;
}

Init Init::of_residual() const {
  return residual_rule_ ? with_linear_rule(*residual_rule_) : *this;
}

Init Init::with_lora(const LoraOptions& options) const {
  Init adapted = *this;
  adapted.lora_ = options.is_on() ? std::make_shared<const LoraOptions>(options) : nullptr;
  return adapted;
}

std::shared_ptr<const LoraOptions> Init::lora() const {
  return lora_ && lora_->adapts(path_) ? lora_ : nullptr;
}

Init Init::with_adapter(const AdapterOptions& options) const {
  Init adapted = *this;
  adapted.adapter_ = options.is_on() ? std::make_shared<const AdapterOptions>(options) : nullptr;
  return adapted;
}

std::shared_ptr<const AdapterOptions> Init::adapter() const {
  return adapter_ && adapter_->adapts(path_) ? adapter_ : nullptr;
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

InitRule Init::rule_or(const InitRule& own, const std::string& name) const {
  const InitRule* given = rule_of(name);
  return given != nullptr ? *given : own;
}

at::Tensor Init::by_rule(const InitRule& rule, const std::string& name, int64_t rows, int64_t cols,
                         int64_t parts) const {
  return draw(rule, {.rows = rows, .columns = cols, .parts = parts}, key(name)).to(device_);
}

at::Tensor Init::xavier_uniform(const std::string& name, int64_t rows, int64_t cols, int64_t parts,
                                double gain) const {
  if (!draws()) return unset_matrix(rows, cols, device_);
  const InitRule own{.distribution = Distribution::kXavierUniform, .number = gain};
  return by_rule(rule_or(linear_rule_.value_or(own), name), name, rows, cols, parts);
}

at::Tensor Init::xavier_uniform(const std::string& name, const std::vector<int64_t>& part_rows,
                                int64_t cols, double gain) const {
  const int64_t rows = std::accumulate(part_rows.begin(), part_rows.end(), int64_t{0});
  if (!draws()) return unset_matrix(rows, cols, device_);
  const InitRule* given = rule_of(name);
  if (const InitRule* rule = given != nullptr || !linear_rule_ ? given : &*linear_rule_) {
    std::vector<at::Tensor> parts;
    for (const int64_t part : part_rows) {
      const uint64_t of_part = mix64(key(name), parts.size());
      parts.push_back(draw(*rule, {.rows = part, .columns = cols, .parts = 1}, of_part));
    }
    return at::cat(parts).to(device_);
  }
  const at::Tensor matrix = draw({.distribution = Distribution::kUniform, .number = 1},
                                 {.rows = rows, .columns = cols}, key(name));
  int64_t row = 0;
  for (const int64_t part : part_rows) {
    const double bound = gain * std::sqrt(6.0 / static_cast<double>(cols + part));
    matrix.narrow(0, row, part).mul_(bound);
    row += part;
  }
  return matrix.to(device_);
}

at::Tensor Init::matrix(const std::string& name, int64_t rows, int64_t cols,
                        const InitRule& own) const {
  if (!draws()) return unset_matrix(rows, cols, device_);
  return by_rule(rule_or(own, name), name, rows, cols, /*parts=*/1);
}

at::Tensor Init::normal(const std::string& name, int64_t rows, int64_t cols, double stddev) const {
  return matrix(name, rows, cols, {.distribution = Distribution::kNormal, .number = stddev});
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
