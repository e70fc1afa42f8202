#include "compress/stack_parts.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "nn/attention.h"
#include "optim/layer_depths.h"

namespace stretto::compress {
namespace {

constexpr std::string_view kUp = "ffn.up.", kDown = "ffn.down.";
constexpr std::string_view kQkv = "self_attention.qkv.", kOut = "self_attention.out.";
constexpr std::string_view kCrossQ = "cross_attention.q.", kCrossKv = "cross_attention.kv.",
                           kCrossOut = "cross_attention.out.";

std::string layer_name(const StackShape& shape, int64_t layer) {
  return shape.prefix + "layers." + std::to_string(layer) + ".";
}

// What stands behind `layers.N.` of a name of this stack, and N; nothing for other names.
struct InLayer {
  int64_t layer = 0;
  std::string rest;
};
std::optional<InLayer> in_layer(const std::string& name, const std::string& prefix) {
  const auto place = optim::place_in_stack(name);
  if (!place || place->stack != prefix) return std::nullopt;
  const size_t begin = prefix.size() + std::string_view("layers.").size();
  return InLayer{place->layer, name.substr(name.find('.', begin) + 1)};
}

const torch::Tensor* find(const NamedTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

// Whether nothing of self-attention has heads but queries, keys and values.
bool has_plain_heads(const NamedTensors& tensors, const std::string& prefix) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
    const auto at = in_layer(tensor.first, prefix);
    if (!at || !at->rest.starts_with("self_attention.")) return true;
    const std::string& rest = at->rest;
    return rest == "self_attention.qkv.weight" || rest == "self_attention.qkv.bias" ||
           rest == "self_attention.out.weight" || rest == "self_attention.out.bias" ||
           rest.starts_with("self_attention.q_norm.") || rest.starts_with("self_attention.k_norm.");
  });
}

StackShape shape_of_stack(const NamedTensors& tensors, const std::string& prefix,
                          const HeadsOf& heads) {
  StackShape shape{.prefix = prefix};
  for (const auto& [name, values] : tensors) {
    const auto at = in_layer(name, prefix);
    if (!at) continue;
    shape.num_layers = std::max(shape.num_layers, at->layer + 1);
    shape.has_cross_attention =
        shape.has_cross_attention || at->rest.starts_with("cross_attention.");
  }
  const std::string first = layer_name(shape, 0);
  const torch::Tensor& down = tensors.at(first + std::string(kDown) + "weight");
  const torch::Tensor& up = tensors.at(first + std::string(kUp) + "weight");
  shape.ffn_dim = down.size(1);
  shape.gated = up.size(0) == 2 * shape.ffn_dim;
  const torch::Tensor* out = find(tensors, first + std::string(kOut) + "weight");
  const auto [of_queries, of_keys] = heads(prefix);
  if (out == nullptr || of_queries == 0 || !has_plain_heads(tensors, prefix)) return shape;
  shape.num_heads = of_queries;
  shape.num_kv_heads = of_keys == 0 ? of_queries : of_keys;
  shape.head_dim = out->size(1) / of_queries;
  return shape;
}

// The sum of each of `count` stretches of equal length of a vector: [count * length] -> [count].
std::vector<double> sums_of(const torch::Tensor& values, int64_t count) {
  const torch::Tensor sums = values.to(torch::kDouble).reshape({count, -1}).sum(1).contiguous();
  const double* begin = sums.const_data_ptr<double>();
  return {begin, begin + count};
}

// The weights and gradients of one map of a layer; undefined where there are none.
struct Map {
  torch::Tensor weight, bias, weight_grad, bias_grad;
};
Map map_of(const NamedTensors& weights, const NamedTensors& grads, const std::string& name) {
  Map map;
  const auto take = [&](const NamedTensors& from, const std::string& leaf, torch::Tensor& into) {
    if (const auto* values = find(from, name + leaf)) into = *values;
  };
  take(weights, "weight", map.weight);
  take(weights, "bias", map.bias);
  take(grads, "weight", map.weight_grad);
  take(grads, "bias", map.bias_grad);
  return map;
}

// What the columns of a map's matrix add to the loss to first order: [in].
torch::Tensor slopes(const Map& map) {
  return (map.weight.to(torch::kDouble) * map.weight_grad.to(torch::kDouble)).sum(0);
}

// The slope of the whole map's output, its bias included.
double slope_of_branch(const Map& map) {
  if (!map.weight.defined() || !map.weight_grad.defined()) return 0;
  double sum = slopes(map).sum().item<double>();
  if (map.bias.defined() && map.bias_grad.defined()) {
    sum += (map.bias.to(torch::kDouble) * map.bias_grad.to(torch::kDouble)).sum().item<double>();
  }
  return std::fabs(sum);
}

void add_to(std::vector<double>& sums, const std::vector<double>& more) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += std::fabs(more[i]);
}

torch::Tensor row_squares(const torch::Tensor& matrix) {
  return matrix.to(torch::kDouble).square().sum(1);
}
torch::Tensor column_squares(const torch::Tensor& matrix) {
  return matrix.to(torch::kDouble).square().sum(0);
}

// [F]: the squared norm of the rows of each unit, its gate's too.
torch::Tensor unit_squares(const StackShape& shape, const torch::Tensor& up) {
  const torch::Tensor rows = row_squares(up);
  return shape.gated ? rows.reshape({2, shape.ffn_dim}).sum(0) : rows;
}

// [heads of keys and values]: the norm of the rows that make a head's values, which are the last of
// `projection`, times that of the columns of `out` that read it.
torch::Tensor head_magnitudes(const StackShape& shape, const torch::Tensor& projection,
                              const torch::Tensor& out) {
  const int64_t groups = shape.num_kv_heads, keys = groups * shape.head_dim;
  const torch::Tensor values = row_squares(projection)
                                   .narrow(0, projection.size(0) - keys, keys)
                                   .reshape({groups, -1})
                                   .sum(1);
  return (values * column_squares(out).reshape({groups, -1}).sum(1)).sqrt();
}

std::vector<double> numbers(const torch::Tensor& values) {
  return sums_of(values, values.numel());
}

torch::Tensor index_of(const std::vector<int64_t>& rows) {
  return torch::tensor(rows, torch::kLong);
}

// Elements [number * width, (number + 1) * width) of each number, behind `offset`.
void append(std::vector<int64_t>& index, const std::vector<int64_t>& numbers_kept, int64_t width,
            int64_t offset) {
  for (const int64_t number : numbers_kept) {
    for (int64_t i = 0; i < width; ++i) index.push_back(offset + number * width + i);
  }
}

// The rows or columns of a tensor of a layer that stay; nothing = all of them.
struct Cut {
  int64_t dim = 0;
  torch::Tensor index;
};
// The same of a tensor of attention, of which heads of keys and values stay, with their queries.
std::optional<Cut> cut_of_heads(const StackShape& shape, const std::vector<int64_t>& kept,
                                const std::string& rest) {
  const int64_t queries = shape.num_heads * shape.head_dim;
  const int64_t keys = shape.num_kv_heads * shape.head_dim;
  std::vector<int64_t> of_queries, of_keys;
  append(of_queries, kept, shape.heads_of_a_group() * shape.head_dim, 0);
  if (rest == std::string(kOut) + "weight" || rest == std::string(kCrossOut) + "weight") {
    return Cut{1, index_of(of_queries)};
  }
  if (rest.starts_with(kCrossQ)) return Cut{0, index_of(of_queries)};
  const bool is_merged = rest.starts_with(kQkv);  // queries stand above keys and values
  if (!is_merged && !rest.starts_with(kCrossKv)) return std::nullopt;
  const int64_t begin = is_merged ? queries : 0;
  append(of_keys, kept, shape.head_dim, begin);
  append(of_keys, kept, shape.head_dim, begin + keys);
  if (is_merged) of_keys.insert(of_keys.begin(), of_queries.begin(), of_queries.end());
  return Cut{0, index_of(of_keys)};
}

std::optional<Cut> cut_of(const StackShape& shape, const StackChoice& choice, const InLayer& at) {
  const auto layer = static_cast<size_t>(at.layer);
  if (at.rest.starts_with(kUp) && !choice.units.empty()) {
    std::vector<int64_t> rows;
    for (int64_t part = 0; part < (shape.gated ? 2 : 1); ++part) {
      append(rows, choice.units.at(layer), 1, part * shape.ffn_dim);
    }
    return Cut{0, index_of(rows)};
  }
  if (at.rest == std::string(kDown) + "weight" && !choice.units.empty()) {
    return Cut{1, index_of(choice.units.at(layer))};
  }
  if (at.rest.starts_with("cross_attention.")) {
    return choice.cross_heads.empty() ? std::nullopt
                                      : cut_of_heads(shape, choice.cross_heads.at(layer), at.rest);
  }
  return choice.heads.empty() ? std::nullopt : cut_of_heads(shape, choice.heads.at(layer), at.rest);
}

}  // namespace

HeadsOf heads_of(const torch::nn::Module& model) {
  std::map<std::string, std::pair<int64_t, int64_t>> heads;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const auto* attention = dynamic_cast<const nn::SelfAttentionImpl*>(item.value().get());
    const auto place = optim::place_in_stack(item.key());
    if (attention == nullptr || !place) continue;
    heads.emplace(place->stack,
                  std::pair{attention->options.num_heads, attention->options.kv_heads()});
  }
  return [heads](const std::string& prefix) {
    const auto found = heads.find(prefix);
    return found == heads.end() ? std::pair<int64_t, int64_t>{0, 0} : found->second;
  };
}

std::vector<StackShape> find_stacks(const NamedTensors& tensors, const HeadsOf& heads) {
  std::vector<StackShape> stacks;
  for (const auto& [name, values] : tensors) {
    if (name.ends_with(".lora_a")) {
      throw Error(ExitCode::kUsage, "`" + name + "`: parts of maps with LoRA are not taken out",
                  "merge it first: a run with train.init_from of this one has it in its weights");
    }
    const auto place = optim::place_in_stack(name);
    if (!place || place->layer != 0 ||
        name != place->stack + "layers.0." + std::string(kDown) + "weight" || values.dim() != 2 ||
        !tensors.contains(place->stack + "layers.0." + std::string(kUp) + "weight")) {
      continue;
    }
    stacks.push_back(shape_of_stack(tensors, place->stack, heads));
  }
  return stacks;
}

PartImportance::PartImportance(std::vector<StackShape> stacks) : shapes_(std::move(stacks)) {
  for (const StackShape& shape : shapes_) {
    const auto layers = static_cast<size_t>(shape.num_layers);
    StackImportance zeros;
    zeros.layers.assign(layers, 0);
    zeros.units.assign(layers, std::vector<double>(static_cast<size_t>(shape.ffn_dim)));
    if (shape.num_heads > 0) {
      zeros.heads.assign(layers, std::vector<double>(static_cast<size_t>(shape.num_kv_heads)));
      if (shape.has_cross_attention) zeros.cross_heads = zeros.heads;
    }
    stacks_.push_back(std::move(zeros));
  }
}

void PartImportance::add_gradients(const optim::Arena& arena) {
  NamedTensors weights, grads;
  for (size_t i = 0; i < arena.slots().size(); ++i) {
    const auto& slot = arena.slots()[i];
    if (!optim::place_in_stack(slot.name)) continue;
    weights[slot.name] = arena.parameter(i).detach().cpu();
    grads[slot.name] = arena.parameter(i).grad().detach().cpu();
  }
  add_gradients(weights, grads);
}

void PartImportance::add_gradients(const NamedTensors& weights, const NamedTensors& grads) {
  const torch::NoGradGuard no_grad;
  for (size_t s = 0; s < shapes_.size(); ++s) {
    const StackShape& shape = shapes_[s];
    for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
      const auto l = static_cast<size_t>(layer);
      const std::string name = layer_name(shape, layer);
      const Map down = map_of(weights, grads, name + std::string(kDown));
      const Map out = map_of(weights, grads, name + std::string(kOut));
      const Map cross = map_of(weights, grads, name + std::string(kCrossOut));
      if (down.weight.defined() && down.weight_grad.defined()) {
        add_to(stacks_[s].units[l], numbers(slopes(down)));
      }
      if (shape.num_heads > 0 && out.weight.defined() && out.weight_grad.defined()) {
        add_to(stacks_[s].heads[l], sums_of(slopes(out), shape.num_kv_heads));
      }
      if (!stacks_[s].cross_heads.empty() && cross.weight.defined() &&
          cross.weight_grad.defined()) {
        add_to(stacks_[s].cross_heads[l], sums_of(slopes(cross), shape.num_kv_heads));
      }
      stacks_[s].layers[l] += slope_of_branch(down) + slope_of_branch(out) + slope_of_branch(cross);
    }
  }
}

void PartImportance::add_magnitudes(const NamedTensors& weights) {
  const torch::NoGradGuard no_grad;
  for (size_t s = 0; s < shapes_.size(); ++s) {
    const StackShape& shape = shapes_[s];
    for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
      const auto l = static_cast<size_t>(layer);
      const std::string name = layer_name(shape, layer);
      const torch::Tensor& up = weights.at(name + std::string(kUp) + "weight");
      const torch::Tensor& down = weights.at(name + std::string(kDown) + "weight");
      const torch::Tensor units = (unit_squares(shape, up) * column_squares(down)).sqrt();
      add_to(stacks_[s].units[l], numbers(units));
      stacks_[s].layers[l] += units.sum().item<double>();
      if (shape.num_heads == 0) continue;
      const auto add_heads = [&](std::string_view projection, std::string_view output,
                                 std::vector<double>& sums) {
        const torch::Tensor heads =
            head_magnitudes(shape, weights.at(name + std::string(projection) + "weight"),
                            weights.at(name + std::string(output) + "weight"));
        add_to(sums, numbers(heads));
        stacks_[s].layers[l] += heads.sum().item<double>();
      };
      add_heads(kQkv, kOut, stacks_[s].heads[l]);
      if (!stacks_[s].cross_heads.empty()) {
        add_heads(kCrossKv, kCrossOut, stacks_[s].cross_heads[l]);
      }
    }
  }
}

NamedTensors without_parts(const NamedTensors& tensors, const StackShape& shape,
                           const StackChoice& choice) {
  NamedTensors left;
  for (const auto& [name, values] : tensors) {
    const auto at = in_layer(name, shape.prefix);
    if (!at) {
      left[name] = values;
      continue;
    }
    const auto place = std::find(choice.layers.begin(), choice.layers.end(), at->layer);
    if (place == choice.layers.end()) continue;
    const std::string renamed = layer_name(shape, place - choice.layers.begin()) + at->rest;
    const auto cut = cut_of(shape, choice, *at);
    left[renamed] = cut ? values.index_select(cut->dim, cut->index).contiguous() : values;
  }
  return left;
}

}  // namespace stretto::compress
