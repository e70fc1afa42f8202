#include "families/text/folders/onnx_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>
#include <vector>

#include "base/file.h"
#include "interchange/folder_tensors.h"
#include "interchange/incompatibility.h"
#include "interchange/new_folder.h"
#include "interchange/onnx_graph.h"
#include "interchange/stored_weights.h"
#include "interchange/tensors.h"
#include "interchange/tokenizer_folder.h"

namespace stretto::interchange {
namespace {

using Ints = std::vector<int64_t>;
using models::BertOptions;

constexpr double kAngleBase = 10000;
constexpr float kMaskedScore = -1e9F;

/// A table [rows, columns] of value(row, column).
template <class Value>
std::vector<float> table_of(int64_t rows, int64_t columns, const Value& value) {
  std::vector<float> table;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) table.push_back(static_cast<float>(value(row, i)));
  }
  return table;
}

/// fairseq's sinusoids (nn/embedding.h): sin, then cos; the first token is at 2.
std::vector<float> sinusoids(int64_t rows, int64_t width) {
  const int64_t half = width / 2;
  return table_of(rows, width, [half](int64_t row, int64_t i) {
    if (i >= 2 * half) return 0.0;
    const double share =
        static_cast<double>(i % half) / static_cast<double>(std::max<int64_t>(half - 1, 1));
    const double angle = static_cast<double>(row + 2) * std::pow(kAngleBase, -share);
    return i < half ? std::sin(angle) : std::cos(angle);
  });
}

/// A matrix [rows, …], its elements after each other, the other way round.
template <class Elements>
Elements transposed_elements(const Elements& values, int64_t rows) {
  Elements out = values;
  const auto height = static_cast<size_t>(rows), width = values.size() / height;
  for (size_t row = 0; row < height; ++row) {
    for (size_t i = 0; i < width; ++i) out[i * height + row] = values[row * width + i];
  }
  return out;
}

/// The int8 of each row of a matrix.
std::string codes_of_view(const store::TensorView& matrix) {
  const auto values = floats_of(matrix);
  return int8_codes(values, int8_scales(values, matrix.shape.at(0)));
}

/// What they are multiplied by to be weights again, fp32 [rows].
std::string multipliers_of_view(const store::TensorView& matrix) {
  auto scales = int8_scales(floats_of(matrix), matrix.shape.at(0));
  for (float& scale : scales) scale = 1 / scale;
  return bytes_of_floats(scales);
}

/// Builds the graph of one model. Values are named by strings; B texts, S tokens, D width, H heads
/// of W columns.
class EncoderGraph {
 public:
  EncoderGraph(const ExportedModel& model, StoredWeights weights, NamedTensors& tensors)
      : model_(model),
        is_int8_(weights == StoredWeights::kInt8),
        options_(model.description.model),
        sizes_(models::sizes_of(options_)),
        tensors_(tensors) {}

  OnnxGraph build() {
    add_inputs();
    std::string x = norm("encoder.embedding_norm", embedded());
    for (int64_t i = 0; i < sizes_.num_layers; ++i) {
      const std::string layer = "encoder.layers." + std::to_string(i) + ".";
      x = residual(layer + "self_residual.norm", x,
                   [&](const std::string& h) { return attention(layer + "self_attention", h); });
      x = residual(layer + "ffn_residual.norm", x,
                   [&](const std::string& h) { return ffn(layer + "ffn", h); });
    }
    if (options_.norm == "pre") x = norm("encoder.final_norm", x);
    add_head(x);
    return std::move(graph_);
  }

 private:
  static std::vector<std::string> sizes_of_tokens() { return {"batch", "sequence"}; }
  /// Of a head: models whose heads were pruned have fewer columns than d_model in all of them.
  int64_t head_width() {
    constexpr int64_t kParts = 3;  // queries, keys, values
    const auto& joined = tensors_.take("encoder.layers.0.self_attention.qkv.weight");
    return joined.shape.at(0) / kParts / sizes_.num_heads;
  }

  void add_inputs() {
    graph_.add_input("input_ids", OnnxType::kInt64, sizes_of_tokens());
    graph_.add_input("attention_mask", OnnxType::kInt64, sizes_of_tokens());
    if (options_.num_segments > 0) {
      graph_.add_input("token_type_ids", OnnxType::kInt64, sizes_of_tokens());
    }
    mask_ =
        graph_.add("Cast", {"attention_mask"}, {{"to", static_cast<int64_t>(OnnxType::kFloat)}});
    const auto hidden = graph_.add("Sub", {graph_.scalar(1), mask_});
    const auto scores = graph_.add("Mul", {hidden, graph_.scalar(kMaskedScore)});
    mask_scores_ = graph_.add("Unsqueeze", {scores, graph_.ints({1, 2})});  // [B, 1, 1, S]
    const auto shape = graph_.add("Shape", {"input_ids"});
    const auto length = graph_.add("Gather", {shape, graph_.scalar_int(1)}, {{"axis", int64_t{0}}});
    places_ = graph_.add("Range", {graph_.scalar_int(0), length, graph_.scalar_int(1)});  // [S]
    if (options_.positions == "rotary") add_angles();
  }

  /// cos and sin of the angle of a place and a column, [S, W]: both columns of a pair have one.
  void add_angles() {
    const int64_t width = head_width(), half = width / 2;
    const auto angle = [=](int64_t row, int64_t i) {
      const double share = 2.0 * static_cast<double>(i % half) / static_cast<double>(width);
      return static_cast<double>(row) * std::pow(kAngleBase, -share);
    };
    const int64_t rows = model_.max_text_tokens;
    const auto cosines =
        table_of(rows, width, [&](int64_t r, int64_t i) { return std::cos(angle(r, i)); });
    const auto sines =
        table_of(rows, width, [&](int64_t r, int64_t i) { return std::sin(angle(r, i)); });
    cosines_ = graph_.add("Gather", {made("rotary.cos", {rows, width}, cosines), places_});
    sines_ = graph_.add("Gather", {made("rotary.sin", {rows, width}, sines), places_});
  }

  std::string made(const std::string& name, const Ints& shape, const std::vector<float>& values) {
    return graph_.weight(name, shape, [values] { return bytes_of_floats(values); });
  }

  store::TensorView f32(const std::string& name) {
    return to_f32(tensors_.take(name), converted_, "the checkpoint");
  }

  /// A tensor as it is.
  std::string tensor(const std::string& name) {
    const auto view = f32(name);
    return graph_.weight(name, view.shape, [bytes = view.bytes] { return std::string(bytes); });
  }

  /// A matrix [out, in] as [in, out].
  std::string right_factor(const std::string& name, const store::TensorView& matrix) {
    const int64_t count = matrix.shape.at(0);
    const Ints shape{matrix.shape.at(1), count};
    if (!is_int8_) {
      return graph_.weight(name + ".weight_t", shape, [matrix, count] {
        return bytes_of_floats(transposed_elements(floats_of(matrix), count));
      });
    }
    const auto codes = graph_.weight(
        name + ".codes_t", shape,
        [matrix, count] { return transposed_elements(codes_of_view(matrix), count); },
        OnnxType::kInt8);
    return graph_.add("DequantizeLinear", {codes, multipliers(name, matrix)},
                      {{"axis", int64_t{1}}});
  }

  std::string multipliers(const std::string& name, const store::TensorView& matrix) {
    return graph_.weight(name + ".scales", {matrix.shape.at(0)},
                         [matrix] { return multipliers_of_view(matrix); });
  }

  /// A table of tokens as int8.
  std::string codes(const std::string& name, const store::TensorView& table) {
    return graph_.weight(
        name + ".codes", table.shape, [table] { return codes_of_view(table); }, OnnxType::kInt8);
  }

  /// Rows of the table of tokens.
  std::string token_rows() {
    const std::string name = "encoder.embedding";
    if (!is_int8_) return graph_.add("Gather", {tensor(name + ".weight"), "input_ids"});
    const auto table = f32(name + ".weight");
    const auto rows = graph_.add("Cast", {graph_.add("Gather", {codes(name, table), "input_ids"})},
                                 {{"to", static_cast<int64_t>(OnnxType::kFloat)}});
    const auto scales = graph_.add("Gather", {multipliers(name, table), "input_ids"});
    return graph_.add("Mul", {rows, graph_.add("Unsqueeze", {scales, graph_.ints({2})})});
  }

  /// The table that logits of tokens are made with, [D, V].
  std::string token_columns() {
    const std::string name = options_.tie_embeddings ? "encoder.embedding" : "head.output";
    if (!options_.tie_embeddings) return right_factor(name, f32(name + ".weight"));
    const auto view = f32(name + ".weight");
    const auto table =
        is_int8_ ? graph_.add("DequantizeLinear", {codes(name, view), multipliers(name, view)},
                              {{"axis", int64_t{0}}})
                 : tensor(name + ".weight");
    return graph_.add("Transpose", {table}, {{"perm", Ints{1, 0}}});
  }

  /// x W^T + b, of rows [from, from + count) of W [out, in] and b; without b where there is none.
  std::string linear(const std::string& name, const std::string& x, int64_t from, int64_t count,
                     const std::string& ending) {
    const auto matrix = rows_of(f32(name + ".weight"), from, count);
    const auto product = graph_.add("MatMul", {x, right_factor(name + ending, matrix)});
    if (tensors_.find(name + ".bias") == nullptr) return product;
    const auto bias = rows_of(f32(name + ".bias"), from, count);
    return graph_.add(
        "Add", {product, graph_.weight(name + ending + ".bias", {count},
                                       [bytes = bias.bytes] { return std::string(bytes); })});
  }

  std::string linear(const std::string& name, const std::string& x) {
    return linear(name, x, 0, tensors_.take(name + ".weight").shape.at(0), "");
  }

  std::string norm(const std::string& name, const std::string& x) {
    const auto epsilon = static_cast<float>(options_.norm_epsilon);
    const auto gain = tensor(name + ".weight");
    if (options_.norm_layer == "layer_norm") {
      return graph_.add("LayerNormalization", {x, gain, tensor(name + ".bias")},
                        {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
    }
    const auto squares = graph_.add("Mul", {x, x});
    const auto mean =
        graph_.add("ReduceMean", {squares}, {{"axes", Ints{-1}}, {"keepdims", int64_t{1}}});
    const auto root = graph_.add("Sqrt", {graph_.add("Add", {mean, graph_.scalar(epsilon)})});
    return graph_.add("Mul", {graph_.add("Div", {x, root}), gain});
  }

  /// post: norm(x + part(x)); pre: x + part(norm(x)).
  template <class Part>
  std::string residual(const std::string& name, const std::string& x, const Part& part) {
    if (options_.norm == "pre") return graph_.add("Add", {x, part(norm(name, x))});
    return norm(name, graph_.add("Add", {x, part(x)}));
  }

  std::string embedded() {
    std::string x = token_rows();
    if (options_.positions == "learned") {
      x = graph_.add("Add",
                     {x, graph_.add("Gather", {tensor("encoder.positions.weight"), places_})});
    } else if (options_.positions == "sinusoidal") {
      const int64_t rows = model_.max_text_tokens;
      const auto table =
          made("encoder.positions.weight", {rows, sizes_.d_model}, sinusoids(rows, sizes_.d_model));
      x = graph_.add("Add", {x, graph_.add("Gather", {table, places_})});
    }
    if (options_.num_segments == 0) return x;
    return graph_.add(
        "Add", {x, graph_.add("Gather", {tensor("encoder.segments.weight"), "token_type_ids"})});
  }

  /// [B, S, D] -> [B, H, S, W], turned by positions where they are rotary.
  std::string split_heads(const std::string& rows, bool turns) {
    const auto split =
        graph_.add("Reshape", {rows, graph_.ints({0, 0, sizes_.num_heads, head_width()})});
    const auto heads = graph_.add("Transpose", {split}, {{"perm", Ints{0, 2, 1, 3}}});
    if (!turns || options_.positions != "rotary") return heads;
    const int64_t half = head_width() / 2;
    const auto halves =
        graph_.add_several("Split", {heads, graph_.ints({half, half})}, 2, {{"axis", int64_t{-1}}});
    const auto crossed =
        graph_.add("Concat", {graph_.add("Neg", {halves[1]}), halves[0]}, {{"axis", int64_t{-1}}});
    return graph_.add("Add",
                      {graph_.add("Mul", {heads, cosines_}), graph_.add("Mul", {crossed, sines_})});
  }

  std::string attention(const std::string& name, const std::string& x) {
    const int64_t d = head_width() * sizes_.num_heads;
    const auto q = split_heads(linear(name + ".qkv", x, 0, d, ".q"), /*turns=*/true);
    const auto k = split_heads(linear(name + ".qkv", x, d, d, ".k"), /*turns=*/true);
    const auto v = split_heads(linear(name + ".qkv", x, 2 * d, d, ".v"), /*turns=*/false);
    const auto keys = graph_.add("Transpose", {k}, {{"perm", Ints{0, 1, 3, 2}}});
    const auto root = static_cast<float>(std::sqrt(static_cast<double>(head_width())));
    const auto scores = graph_.add("Div", {graph_.add("MatMul", {q, keys}), graph_.scalar(root)});
    const auto weights =
        graph_.add("Softmax", {graph_.add("Add", {scores, mask_scores_})}, {{"axis", int64_t{-1}}});
    const auto attended =
        graph_.add("Transpose", {graph_.add("MatMul", {weights, v})}, {{"perm", Ints{0, 2, 1, 3}}});
    return linear(name + ".out", graph_.add("Reshape", {attended, graph_.ints({0, 0, d})}));
  }

  std::string activation(const std::string& kind, const std::string& x) {
    if (kind == "relu") return graph_.add("Relu", {x});
    if (kind == "silu") return graph_.add("Mul", {x, graph_.add("Sigmoid", {x})});
    std::string inner;
    if (kind == "gelu_tanh") {
      constexpr float kCubic = 0.044715F;
      const auto scale = static_cast<float>(std::sqrt(2 / std::numbers::pi));
      const auto cube = graph_.add("Mul", {graph_.add("Mul", {x, x}), x});
      const auto sum = graph_.add("Add", {x, graph_.add("Mul", {cube, graph_.scalar(kCubic)})});
      inner = graph_.add("Tanh", {graph_.add("Mul", {sum, graph_.scalar(scale)})});
    } else {
      const auto root = graph_.scalar(std::numbers::sqrt2_v<float>);
      inner = graph_.add("Erf", {graph_.add("Div", {x, root})});
    }
    const auto raised = graph_.add("Add", {inner, graph_.scalar(1)});
    return graph_.add("Mul", {graph_.add("Mul", {x, raised}), graph_.scalar(0.5F)});
  }

  std::string ffn(const std::string& name, const std::string& x) {
    const std::string& kind = options_.activation;
    if (kind != "geglu" && kind != "swiglu") {
      return linear(name + ".down", activation(kind, linear(name + ".up", x)));
    }
    const int64_t inner = tensors_.take(name + ".up.weight").shape.at(0) / 2;
    const auto gate = linear(name + ".up", x, 0, inner, ".gate");
    const auto up = linear(name + ".up", x, inner, inner, ".value");
    const auto active = activation(kind == "geglu" ? "gelu" : "silu", gate);
    return linear(name + ".down", graph_.add("Mul", {active, up}));
  }

  /// [B, S, D] -> [B, D], as model.pooling says, without the layer behind it.
  std::string pooled_rows(const std::string& x) {
    if (options_.pooling != "mean") {
      return graph_.add("Gather", {x, graph_.scalar_int(0)}, {{"axis", int64_t{1}}});
    }
    const auto column = graph_.add("Unsqueeze", {mask_, graph_.ints({2})});  // [B, S, 1]
    const auto sum_of = [&](const std::string& rows) {
      return graph_.add("ReduceSum", {rows, graph_.ints({1})}, {{"keepdims", int64_t{0}}});
    };
    return graph_.add("Div", {sum_of(graph_.add("Mul", {x, column})), sum_of(column)});
  }

  std::string pooled(const std::string& x) {
    const auto row = pooled_rows(x);
    if (!models::has_pooler(options_)) return row;
    return graph_.add(options_.pooling == "cls_relu" ? "Relu" : "Tanh",
                      {linear("head.pooler", row)});
  }

  void add_head(const std::string& x) {
    switch (model_.description.head) {
      case Head::kNone:
        return add_rows(x);
      case Head::kMaskedTokens:
        return add_masked_tokens(x);
      case Head::kLabels:
        return add_labels(x);
      case Head::kSpans:
        return add_spans(x);
    }
  }

  void add_rows(const std::string& x) {
    const std::string width = std::to_string(sizes_.d_model);
    graph_.add_output("last_hidden_state", x, OnnxType::kFloat, {"batch", "sequence", width});
    if (!models::has_pooler(options_)) return;
    graph_.add_output("pooler_output", pooled(x), OnnxType::kFloat, {"batch", width});
  }

  void add_masked_tokens(const std::string& x) {
    const std::string& own = options_.activation;
    const auto dense =
        activation(own == "geglu" || own == "swiglu" ? "gelu" : own, linear("head.dense", x));
    const auto rows = norm("head.norm", dense);
    const auto logits =
        graph_.add("Add", {graph_.add("MatMul", {rows, token_columns()}), tensor("head.bias")});
    graph_.add_output("logits", logits, OnnxType::kFloat,
                      {"batch", "sequence", std::to_string(model_.description.vocab_size)});
  }

  void add_labels(const std::string& x) {
    const auto& labels = model_.description.labels;
    const int64_t count = tensors_.take("head.output.weight").shape.at(0);
    graph_.add_output("logits", linear("head.output", pooled(x)), OnnxType::kFloat,
                      {"batch", std::to_string(count)});
    if (!labels.empty()) graph_.add_metadata("labels", nlohmann::json(labels).dump());
  }

  void add_spans(const std::string& x) {
    const auto scores = linear("head.output", x);  // [B, S, 2]
    const char* names[] = {"start_logits", "end_logits"};
    for (int64_t i = 0; i < 2; ++i) {
      const auto column =
          graph_.add("Gather", {scores, graph_.scalar_int(i)}, {{"axis", int64_t{2}}});
      graph_.add_output(names[i], column, OnnxType::kFloat, sizes_of_tokens());
    }
  }

  const ExportedModel& model_;
  const bool is_int8_;
  const BertOptions& options_;
  models::BertSizes sizes_;
  NamedTensors& tensors_;
  OnnxGraph graph_{"encoder"};
  std::deque<std::string> converted_;  // bytes of tensors that were not F32
  std::string mask_, mask_scores_, places_, cosines_, sines_;
};

}  // namespace

std::string onnx_incompatibility(const BertOptions& model) {
  if (model.adapter.is_on()) return adapter_incompatibility(model.adapter);
  return "";
}

void export_onnx_encoder(const ExportedModel& model, StoredWeights weights,
                         const std::filesystem::path& folder) {
  const auto& description = model.description;
  require_expressed("ONNX", onnx_incompatibility(description.model));
  NamedTensors tensors(without_spare_rows(
      model.tensors, description.vocab_size,
      [&](const std::string& name) { return is_table_of_tokens(name, description); }));
  EncoderGraph builder(model, weights, tensors);
  const OnnxGraph graph = builder.build();
  tensors.require_all_taken("ONNX");
  NewFolder made(folder);
  graph.write(made.path());
  const auto files =
      tokenizer_files(model.tokenizer, model.max_text_tokens, description.model.num_segments);
  for (const auto& [name, bytes] : files) write_file_atomic(made.path() / name, bytes);
  made.publish();
}

}  // namespace stretto::interchange
