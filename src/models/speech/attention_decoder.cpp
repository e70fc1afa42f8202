#include "models/speech/attention_decoder.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "models/lanes.h"
#include "models/operations.h"
#include "models/packed.h"
#include "models/parts.h"
#include "models/recurrent_options.h"
#include "models/speech/attention_steps.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

constexpr int64_t kLstmGates = 4;

/// The decoder's layers in the words of other recurrent ones.
RecurrentPart part_of_speller(const AttentionDecoderOptions& options) {
  LstmDecoderOptions layers;
  layers.num_layers = options.num_layers;
  layers.residual_from = options.num_layers;
  layers.dropout = options.dropout;
  layers.init_bound = 0;
  return RecurrentPart(layers);
}

/// The labels of a batch with the boundary in front of them, and behind them.
struct BoundedLabels {
  nn::PackedRows input;
  at::Tensor targets;    ///< int64 [N]
  at::Tensor utterance;  ///< int64 [N]: whose each row is
};

/// The key of row t of an utterance is that of its first frame plus t + 1: a function of sample and
/// place.
at::Tensor keys_of_labels(const nn::PackedRows& memory, const BoundedLabels& labels) {
  const int64_t rows = memory.row_keys.size(0);
  if (rows == 0) return at::zeros_like(labels.utterance);
  // An empty utterance at the end has no first row; those behind it none of their own either.
  const at::Tensor first = first_places(memory.offsets).clamp_max(rows - 1);
  return memory.row_keys.index_select(0, first).index_select(0, labels.utterance) +
         labels.input.positions + 1;
}

BoundedLabels with_boundary(const nn::PackedRows& labels, const nn::PackedRows& memory,
                            int64_t boundary) {
  const int64_t utterances = labels.offsets.values.size(0) - 1;
  const int64_t count = labels.ids.size(0), steps = count + utterances;
  const at::TensorOptions longs = labels.ids.options().dtype(at::kLong);
  const at::Tensor lengths = at::diff(labels.offsets.values.to(at::kLong));
  BoundedLabels bounded;
  bounded.utterance = at::repeat_interleave(lengths + 1, std::optional<int64_t>(steps));
  bounded.input.offsets = {
      .values = labels.offsets.values + at::arange(utterances + 1, labels.offsets.values.options()),
      .max_length = labels.offsets.max_length + 1};
  bounded.input.positions = at::arange(steps, longs) -
                            first_places(bounded.input.offsets).index_select(0, bounded.utterance);
  // A label stands one row farther back for each utterance in front of its own, and one more behind
  // a boundary.
  const at::Tensor places =
      at::arange(count, longs) + at::repeat_interleave(lengths, std::optional<int64_t>(count));
  const at::Tensor boundaries = at::full({steps}, boundary, longs);
  bounded.input.ids = boundaries.index_copy(0, places + 1, labels.ids);
  bounded.targets = boundaries.index_copy(0, places, labels.ids);
  if (memory.row_keys.defined()) bounded.input.row_keys = keys_of_labels(memory, bounded);
  return bounded;
}

/// The steps of a batch: those of the same number in all utterances that have them together, the
/// longest utterance first.
struct StepOrder {
  std::vector<int64_t> utterances;  ///< longest first
  std::vector<int64_t> counts;      ///< utterances of each step: the first so many
  std::vector<int64_t> rows;        ///< the packed row of each, step by step
  std::vector<int64_t> inverse;     ///< where each packed row stands among them

  explicit StepOrder(const std::vector<int64_t>& lengths) : utterances(lengths.size()) {
    std::iota(utterances.begin(), utterances.end(), 0);
    const auto length = [&](int64_t b) { return lengths[static_cast<size_t>(b)]; };
    std::stable_sort(utterances.begin(), utterances.end(),
                     [&](int64_t a, int64_t b) { return length(a) > length(b); });
    std::vector<int64_t> begins(lengths.size() + 1, 0);
    std::partial_sum(lengths.begin(), lengths.end(), begins.begin() + 1);
    inverse.resize(static_cast<size_t>(begins.back()));
    for (int64_t t = 0; !utterances.empty() && t < length(utterances.front()); ++t) {
      int64_t count = 0;
      for (const int64_t b : utterances) {
        if (length(b) <= t) break;
        const int64_t row = begins[static_cast<size_t>(b)] + t;
        inverse[static_cast<size_t>(row)] = static_cast<int64_t>(rows.size());
        rows.push_back(row);
        ++count;
      }
      counts.push_back(count);
    }
  }
};

/// The first rows of a step's tensor, for the utterances that go on; undefined stays undefined.
at::Tensor going_on(const at::Tensor& x, int64_t rows) {
  return x.defined() && x.size(0) > rows ? x.narrow(0, 0, rows) : x;
}

}  // namespace

AttentionDecoder::AttentionDecoder(const AttentionDecoderOptions& options,
                                   const AttentionDecoderPart& part)
    : part_(part_of_speller(options)),
      label_smoothing_(options.label_smoothing),
      num_labels_(part.num_labels) {
  TORCH_CHECK(num_labels_ > 0, "[attention_decoder] there must be labels, got ", num_labels_);
  const int64_t units = options.hidden_dim, memory = part.memory_width;
  embedding_ =
      register_module("embedding", nn::Embedding(part.init.child("embedding"), num_labels_ + 1,
                                                 options.embedding_dim, /*pad=*/int64_t{-1}));
  const nn::Init place = part.init.child("layers");
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < options.num_layers; ++i) {
    layers_.emplace_back(place.child(std::to_string(i)), part_,
                         i == 0 ? options.embedding_dim : units + memory, units);
    list->push_back(layers_.back());
  }
  context_ = layers_[0]->register_module(
      "context", part_.linear(place.child("0").child("context"), memory, kLstmGates * units,
                              kLstmGates, /*bias=*/false));
  register_module("layers", list);
  attention_ = register_module(
      "attention",
      LocationAttention(part.init.child("attention"), options,
                        LocationAttentionImpl::Widths{.state = units, .memory = memory}));
  hidden_ = register_module("hidden", nn::Linear(part.init.child("hidden"), units + memory, units));
  output_ =
      register_module("output", nn::Linear(part.init.child("output"), units, num_labels_ + 1));
}

at::Tensor AttentionDecoder::embed(const at::Tensor& ids) const {
  return embedding_->forward(ids, /*position=*/{}, /*dropped=*/{}, nn::RowScale::kOne);
}

kernels::RecurrentState AttentionDecoder::first_step(const at::Tensor& gates,
                                                     const kernels::RecurrentState& before,
                                                     const at::Tensor& context) const {
  at::Tensor sums = gates;
  if (before.h.defined()) sums = sums + layers_[0]->hidden->forward(before.h);
  if (context.defined()) sums = sums + context_->forward(context);
  const std::vector<at::Tensor> parts = sums.chunk(kLstmGates, 1);  // i, f, g, o
  at::Tensor c = at::sigmoid(parts[0]) * at::tanh(parts[2]);
  if (before.c.defined()) c = c + at::sigmoid(parts[1]) * before.c;
  return {.h = at::sigmoid(parts[3]) * at::tanh(c), .c = c};
}

AttentionDecoder::Walked AttentionDecoder::walk(const nn::PackedRows& input, const Encoded& memory,
                                                const RecurrentPass& pass,
                                                bool wants_weights) const {
  const StepOrder order(lengths_of(input.offsets));
  const AttendingLanes lanes{.lengths = lengths_of(memory.rows.offsets),
                             .sources = order.utterances};
  const AttendedRows all = attended_rows(attention_->keys(memory), memory.attended(), lanes);
  std::vector<int64_t> bounds{0};  // of the rows of each lane
  for (const int64_t b : order.utterances) {
    bounds.push_back(bounds.back() + lanes.lengths[static_cast<size_t>(b)]);
  }
  const auto index = [&](const std::vector<int64_t>& rows) {
    return at::tensor(rows, at::kLong).to(input.ids.device());
  };
  const std::vector<at::Tensor> gates = layers_[0]
                                            ->gates(pass.drop_input(embed(input.ids), 0))
                                            .index_select(0, index(order.rows))
                                            .split_with_sizes(order.counts);
  Walked walked;
  if (wants_weights) walked.weights.resize(order.utterances.size());
  std::vector<at::Tensor> states, contexts;
  kernels::RecurrentState state;
  at::Tensor context, seen;
  for (size_t t = 0; t < order.counts.size(); ++t) {
    const int64_t count = order.counts[t], rows = bounds[static_cast<size_t>(count)];
    const AttendedRows attended = all.first(count, rows);
    state = first_step(gates[t], {.h = going_on(state.h, count), .c = going_on(state.c, count)},
                       going_on(context, count));
    seen = going_on(seen, rows);
    const LocationAttentionImpl::Result result = attention_->forward(state.h, attended, seen);
    seen = attention_->seen_after(result.weights, seen);
    context = result.context;
    states.push_back(state.h);
    contexts.push_back(context);
    for (size_t i = 0; wants_weights && i < static_cast<size_t>(count); ++i) {
      walked.weights[static_cast<size_t>(order.utterances[i])].push_back(
          result.weights.narrow(0, bounds[i], bounds[i + 1] - bounds[i]));
    }
  }
  const at::Tensor packed = index(order.inverse);
  walked.h = nn::watch(*layers_[0], at::cat(states).index_select(0, packed));
  walked.context = at::cat(contexts).index_select(0, packed);
  return walked;
}

at::Tensor AttentionDecoder::logits(const at::Tensor& top, const at::Tensor& context,
                                    const kernels::Dropout& dropout) const {
  const at::Tensor rows = hidden_->forward(at::cat({top, context}, 1)).tanh();
  const at::Tensor logits = output_->forward(kernels::dropout(rows, dropout));
  return logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
}

at::Tensor AttentionDecoder::losses(const nn::PackedRows& labels, const Encoded& memory,
                                    const ForwardContext& context) const {
  const int64_t utterances = labels.offsets.values.size(0) - 1;
  TORCH_CHECK(utterances == memory.rows.offsets.values.size(0) - 1,
              "[attention_decoder] labels are of ", utterances, " utterances, and the memory of ",
              memory.rows.offsets.values.size(0) - 1);
  if (utterances == 0) return at::zeros({0}, memory.keys.options());
  const BoundedLabels bounded = with_boundary(labels, memory.rows, boundary());
  const RecurrentPass pass(part_, bounded.input, context, kSpeechDecoderSites);
  const Walked first = walk(bounded.input, memory, pass, /*wants_weights=*/false);
  at::Tensor x = first.h;
  for (size_t i = 1; i < layers_.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    const at::Tensor in = pass.drop_input(at::cat({x, first.context}, 1), layer);
    x = layers_[i]->forward(in, {}, pass.of(layer, Direction::kForward)).h;
  }
  const kernels::Dropout dropout = context.dropout(bounded.input.row_keys)
                                       .at(part_.dropout, kSpeechDecoderSites + kConvOutputSite);
  const at::Tensor log_p = at::log_softmax(logits(x, first.context, dropout), 1);
  at::Tensor each = -log_p.gather(1, bounded.targets.unsqueeze(1)).squeeze(1);
  if (label_smoothing_ > 0) {
    // As kernels::linear_cross_entropy smooths.
    const double share = label_smoothing_ / static_cast<double>(num_labels_);
    each = (1 - label_smoothing_ - share) * each - share * log_p.sum(1);
  }
  return at::zeros({utterances}, each.options()).index_add(0, bounded.utterance, each);
}

std::vector<at::Tensor> AttentionDecoder::attention(const nn::PackedRows& labels,
                                                    const Encoded& memory) const {
  const torch::NoGradGuard no_grad;
  std::vector<at::Tensor> matrices;
  if (labels.offsets.values.size(0) < 2) return matrices;
  nn::PackedRows no_keys = memory.rows;
  no_keys.row_keys = at::Tensor();
  const BoundedLabels bounded = with_boundary(labels, no_keys, boundary());
  const RecurrentPass pass(part_, bounded.input, {}, kSpeechDecoderSites);
  for (const auto& steps : walk(bounded.input, memory, pass, /*wants_weights=*/true).weights) {
    matrices.push_back(at::stack(steps));
  }
  return matrices;
}

std::unique_ptr<decoding::StepModel> AttentionDecoder::start(const Encoded& memory,
                                                             int64_t lanes_per_source) {
  auto self = std::dynamic_pointer_cast<AttentionDecoder>(shared_from_this());
  return std::make_unique<AttentionSteps>(std::move(self), memory, lanes_per_source);
}

double AttentionDecoder::operations(double labels, double memory_length) const {
  const double step = weight_operations(*this) - weight_operations(*attention_) +
                      attention_->operations(memory_length);
  return (labels + 1) * step + memory_length * attention_->key_operations();
}

}  // namespace stretto::models
