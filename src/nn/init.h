#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/adapter_options.h"
#include "nn/init_rules.h"
#include "nn/lora_options.h"

namespace stretto::nn {

/// Where a parameter is born: its dotted name, the seed of the run and the device.
///
/// Each row of a parameter is one Philox stream keyed by (seed, hash of the name, row). First
/// weights therefore depend on nothing but seed, name and shape: not on the device, the number of
/// threads, or the order in which modules are built. On the meta device nothing is drawn or
/// allocated.
///
/// A model draws each parameter by a rule of its own, unless one of `model.init` names it. Whatever
/// a layer does to a parameter afterwards (the row of zeros for padding) it does to both.
///
///     Init root(seed, at::kCPU);
///     Linear projection(root.child("encoder").child("output"), 512, 512);
class Init {
 public:
  Init(uint64_t seed, at::Device device) : seed_(seed), device_(device) {}

  /// Matrices are left unset, for a model whose weights are loaded at once: drawing them takes
  /// longer than reading them.
  static Init unset(at::Device device);

  /// The same place where these rules come before the model's own; the first that matches counts.
  Init with_rules(std::vector<InitRule> rules) const;

  /// The same place where linear maps start by `rule`, in the place of the one that Linear has.
  Init with_linear_rule(const InitRule& rule) const;

  /// The same place where linear maps that end a part of a layer, whose output is added to the
  /// residual stream, start by `rule`, in the place of that of with_linear_rule().
  Init with_residual_rule(const InitRule& rule) const;
  /// The same place for such a map: with_residual_rule() is in force where it was called.
  Init of_residual() const;

  /// The same place where maps learn as `options` say (nn/linear.h, nn/time_convolution.h).
  Init with_lora(const LoraOptions& options) const;

  /// What the map at this place learns by; null where it learns its own weights.
  std::shared_ptr<const LoraOptions> lora() const;

  /// The same place where parts of layers learn as `options` say (nn/adapter.h).
  Init with_adapter(const AdapterOptions& options) const;

  /// What the part of a layer at this place learns by; null where it has no adapter.
  std::shared_ptr<const AdapterOptions> adapter() const;

  /// The dotted name of this place; empty at the root.
  const std::string& path() const { return path_; }

  /// The place called `name` inside this one.
  Init child(const std::string& name) const;

  /// Whether a rule of with_rules() names the parameter.
  bool has_rule(const std::string& name) const { return rule_of(name) != nullptr; }

  /// The weight of a linear map: uniform in ±gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio
  /// 2010), or by the rule of with_linear_rule(); fp32 [rows, cols].
  ///
  /// @param parts  the rows are so many equal matrices merged into one; each has its own fan_out
  at::Tensor xavier_uniform(const std::string& name, int64_t rows, int64_t cols, int64_t parts = 1,
                            double gain = 1.0) const;

  /// The same of matrices with these numbers of rows, merged into one; each has its own fan_out.
  at::Tensor xavier_uniform(const std::string& name, const std::vector<int64_t>& part_rows,
                            int64_t cols, double gain) const;

  /// By a layer's own rule, whose pattern does not count, fp32 [rows, cols].
  at::Tensor matrix(const std::string& name, int64_t rows, int64_t cols, const InitRule& own) const;

  /// Normal with mean 0, fp32 [rows, cols].
  at::Tensor normal(const std::string& name, int64_t rows, int64_t cols, double stddev) const;

  /// The vector `name` that starts as these values, fp32 [size], for a layer that makes them
  /// itself.
  at::Tensor vector(const std::string& name, const at::Tensor& values) const;

  /// The vector `name`, fp32 [size], every element `value`.
  at::Tensor constant(const std::string& name, int64_t size, double value) const;

  /// What is no parameter and has no rule: fp32 [size], every element `value`.
  at::Tensor buffer(int64_t size, double value) const;

  at::Device device() const { return device_; }

 private:
  uint64_t key(const std::string& name) const;
  const InitRule* rule_of(const std::string& name) const;
  InitRule rule_or(const InitRule& own, const std::string& name) const;
  at::Tensor by_rule(const InitRule& rule, const std::string& name, int64_t rows, int64_t cols,
                     int64_t parts) const;
  bool draws() const { return draws_ && !device_.is_meta(); }

  uint64_t seed_;
  at::Device device_;
  bool draws_ = true;
  std::string path_;
  std::shared_ptr<const std::vector<InitRule>> rules_;  // null: none
  std::optional<InitRule> linear_rule_, residual_rule_;
  std::shared_ptr<const LoraOptions> lora_;        // null: none
  std::shared_ptr<const AdapterOptions> adapter_;  // null: none
};

}  // namespace stretto::nn
