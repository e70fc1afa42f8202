#include "models/speech/attention_decoder.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/schema.h"
#include "decoding/search.h"
#include "tests/models/speech/packed_frames.h"
#include "tests/models/speech/speech_cases.h"

namespace stretto::models {
namespace {

using testing::speech::packed_frames, testing::speech::packed_labels, testing::speech::sequences_of;
using testing::speech::shake_norms, testing::speech::named_tensors;

static_assert(config::lists_every_member<AttentionDecoderOptions>);

constexpr int64_t kSpellerMemory = 6, kSpellerLabels = 5;

AttentionDecoderOptions small_speller(int64_t num_layers = 2, bool coverage = true) {
  AttentionDecoderOptions options;
  options.weight = 0.75;
  options.num_layers = num_layers;
  options.hidden_dim = 7;
  options.embedding_dim = 4;
  options.attention_dim = 5;
  options.location_filters = 3;
  options.location_kernel = 5;
  options.coverage = coverage;
  options.dropout = 0;
  return options;
}

std::shared_ptr<AttentionDecoder> speller(const AttentionDecoderOptions& options,
                                          at::ScalarType dtype = at::kDouble) {
  auto decoder = std::make_shared<AttentionDecoder>(
      options, AttentionDecoderPart{.init = nn::Init(4, at::kCPU),
                                    .memory_width = kSpellerMemory,
                                    .num_labels = kSpellerLabels});
  shake_norms(*decoder);
  decoder->to(dtype);
  return decoder;
}

Encoded spoken_memory(const std::vector<int64_t>& lengths, const std::vector<int64_t>& ids,
                      at::ScalarType dtype = at::kDouble) {
  Encoded memory;
  memory.rows = packed_frames(lengths, kSpellerMemory, ids, dtype);
  memory.keys = memory.rows.values;
  memory.rows.values = at::Tensor();
  return memory;
}
Encoded spoken_memory(const std::vector<int64_t>& lengths) {
  return spoken_memory(lengths, testing::speech::first_ids(lengths.size()));
}

using SpellerTensors = std::map<std::string, at::Tensor>;

/// -log p of the labels and their end, one step after the other, from the formulas.
at::Tensor plain_speller_loss(const SpellerTensors& tensors, const AttentionDecoderOptions& options,
                              const std::vector<int64_t>& labels, const at::Tensor& memory) {
  const auto linear = [&](const std::string& name, const at::Tensor& x) {
    const auto bias = tensors.find(name + ".bias");
    return at::linear(x, tensors.at(name + ".weight"),
                      bias == tensors.end() ? at::Tensor() : bias->second);
  };
  const auto number = [](int64_t i) { return "layers." + std::to_string(i); };
  const int64_t units = options.hidden_dim, length = memory.size(0);
  const auto none = [&](int64_t width) { return at::zeros({1, width}, memory.options()); };
  std::vector<at::Tensor> h, c;
  for (int64_t i = 0; i < options.num_layers; ++i) {
    h.push_back(none(units));
    c.push_back(none(units));
  }
  at::Tensor context = none(kSpellerMemory), seen = at::zeros({length}, memory.options());
  at::Tensor loss = at::zeros({}, memory.options());
  for (size_t t = 0; t <= labels.size(); ++t) {
    const int64_t before = t == 0 ? kSpellerLabels : labels[t - 1];
    at::Tensor x = tensors.at("embedding.weight").narrow(0, before, 1);
    for (int64_t i = 0; i < options.num_layers; ++i) {
      const auto at_layer = static_cast<size_t>(i);
      at::Tensor gates = linear(number(i) + ".hidden", h[at_layer]);
      if (i == 0) {
        gates = gates + linear("layers.0.input", x) + linear("layers.0.context", context);
      } else {
        gates = gates + linear(number(i) + ".input", at::cat({x, context}, 1));
      }
      const auto parts = gates.chunk(4, 1);
      c[at_layer] = parts[1].sigmoid() * c[at_layer] + parts[0].sigmoid() * parts[2].tanh();
      x = h[at_layer] = parts[3].sigmoid() * c[at_layer].tanh();
      if (i > 0 || length == 0) continue;
      const at::Tensor filters = tensors.at("attention.filters").unsqueeze(1);
      const at::Tensor filtered =
          at::conv1d(seen.view({1, 1, length}), filters, {}, 1, options.location_kernel / 2);
      const at::Tensor sums = linear("attention.key", memory) + linear("attention.query", x) +
                              linear("attention.location", filtered.squeeze(0).t());
      const at::Tensor weights = linear("attention.score", sums.tanh()).squeeze(1).softmax(0);
      seen = options.coverage ? seen + weights : weights;
      context = weights.unsqueeze(0).matmul(memory);
    }
    const at::Tensor row = linear("hidden", at::cat({x, context}, 1)).tanh();
    const at::Tensor log_p = linear("output", row).log_softmax(1).squeeze(0);
    const int64_t target = t < labels.size() ? labels[t] : kSpellerLabels;
    const double share = options.label_smoothing / static_cast<double>(kSpellerLabels);
    loss = loss - (1 - options.label_smoothing - share) * log_p[target] - share * log_p.sum();
  }
  return loss;
}

const std::vector<std::vector<int64_t>>& spoken_labels() {
  static const std::vector<std::vector<int64_t>> labels{{1, 2}, {}, {4, 4, 0, 3}, {0}, {2, 1, 3}};
  return labels;
}
const std::vector<int64_t>& spoken_lengths() {
  static const std::vector<int64_t> lengths{6, 3, 9, 1, 0};
  return lengths;
}

TEST(AttentionDecoder, LossesAndGradientsAreThoseOfTheFormulas) {
  for (const bool coverage : {true, false}) {
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE((coverage ? "coverage " : "last step ") + std::to_string(smoothing));
      AttentionDecoderOptions options = small_speller(coverage ? 2 : 1, coverage);
      options.label_smoothing = smoothing;
      const auto decoder = speller(options);
      Encoded memory = spoken_memory(spoken_lengths());
      memory.keys.requires_grad_(true);
      const auto rows = sequences_of(memory.keys, memory.rows.offsets);
      std::vector<at::Tensor> losses;
      for (size_t i = 0; i < rows.size(); ++i) {
        losses.push_back(
            plain_speller_loss(named_tensors(*decoder), options, spoken_labels()[i], rows[i]));
      }
      const at::Tensor want = at::stack(losses);
      const at::Tensor got = decoder->losses(packed_labels(spoken_labels()), memory, {});
      EXPECT_TRUE(at::allclose(got, want, 1e-9, 1e-9)) << got << want;
      std::vector<at::Tensor> inputs = decoder->parameters();
      inputs.push_back(memory.keys);
      const at::Tensor slope = at::arange(1, 6, at::kDouble);
      const auto of_want = torch::autograd::grad({want}, inputs, {slope});
      const auto of_got = torch::autograd::grad({got}, inputs, {slope});
      for (size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_TRUE(at::allclose(of_got[i], of_want[i], 1e-8, 1e-9)) << "input " << i;
      }
    }
  }
}

TEST(AttentionDecoder, LearnsFromRowsThatHaveNoGradient) {
  const auto decoder = speller(small_speller());
  decoder->losses(packed_labels(spoken_labels()), spoken_memory(spoken_lengths()), {})
      .sum()
      .backward();
  for (const auto& item : decoder->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
  }
}

TEST(AttentionDecoder, AnUtteranceHasTheSameLossInEveryBatch) {
  AttentionDecoderOptions options = small_speller();
  options.dropout = 0.3;
  const auto decoder = speller(options);
  for (const bool training : {false, true}) {
    const ForwardContext context{.training = training, .dropout_key = 5};
    const at::Tensor together =
        decoder->losses(packed_labels(spoken_labels()), spoken_memory(spoken_lengths()), context);
    // The key of a mask is that of an utterance's first row, so that one without rows has none.
    for (size_t i = 0; i + 1 < spoken_lengths().size(); ++i) {
      const std::vector<int64_t> length{spoken_lengths()[i]}, id{static_cast<int64_t>(i)};
      const at::Tensor alone =
          decoder->losses(packed_labels({spoken_labels()[i]}), spoken_memory(length, id), context);
      EXPECT_NEAR(alone.item<double>(), together[static_cast<int64_t>(i)].item<double>(), 1e-9);
    }
  }
}

TEST(AttentionDecoder, StepsAreThoseOfTeacherForcing) {
  const auto decoder = speller(small_speller());
  const Encoded memory = spoken_memory({6, 3, 9});
  const std::vector<std::vector<int64_t>> labels{{1, 2, 0}, {3, 3, 3}, {4, 0, 2}};
  const at::Tensor want = decoder->losses(packed_labels(labels), memory, {});
  // Two lanes of each source: the first spells the labels, the second something else.
  const auto steps = decoder->start(memory, 2);
  EXPECT_EQ(steps->vocab_size(), kSpellerLabels + 1);
  const int64_t end = decoder->boundary();
  at::Tensor sums = at::zeros({3}, at::kDouble);
  std::vector<int64_t> tokens(6, end);
  for (size_t t = 0; t < 4; ++t) {
    const at::Tensor log_p = steps->step(at::tensor(tokens, at::kLong));
    for (int64_t s = 0; s < 3; ++s) {
      const auto source = static_cast<size_t>(s);
      const int64_t label = t < 3 ? labels[source][t] : end, lane = t % 2 == 0 ? 2 * s : 2 * s + 1;
      sums[s] -= log_p[lane][label];
      // From now on the other lane is the one that spells them.
      tokens[source * 2 + (t + 1) % 2] = label;
      tokens[source * 2 + t % 2] = 1;
    }
    steps->reorder({1, 0, 3, 2, 5, 4});
  }
  EXPECT_TRUE(at::allclose(sums, want.to(at::kDouble), 1e-5, 1e-5)) << sums << want;
}

TEST(AttentionDecoder, LanesGoOnWhenOtherSourcesLeave) {
  const auto decoder = speller(small_speller());
  const auto all = decoder->start(spoken_memory({6, 3, 9}), 2);
  const auto last = decoder->start(spoken_memory({9}, {2}), 1);
  const int64_t end = decoder->boundary();
  all->step(at::full({6}, end, at::kLong));
  last->step(at::full({1}, end, at::kLong));
  all->reorder({0, 1, 5});
  const at::Tensor some = all->step(at::tensor({1, 2, 3}, at::kLong));
  EXPECT_TRUE(at::allclose(some[2], last->step(at::full({1}, 3, at::kLong))[0], 1e-6, 1e-6));
  all->reorder({2});
  EXPECT_TRUE(at::allclose(all->step(at::full({1}, 4, at::kLong)),
                           last->step(at::full({1}, 4, at::kLong)), 1e-6, 1e-6));
  EXPECT_THROW(all->step(at::tensor({4, 4}, at::kLong)), c10::Error);
}

TEST(AttentionDecoder, ShowsWhereEachLabelWasRead) {
  const auto decoder = speller(small_speller());
  const auto matrices =
      decoder->attention(packed_labels(spoken_labels()), spoken_memory(spoken_lengths()));
  ASSERT_EQ(matrices.size(), spoken_labels().size());
  for (size_t i = 0; i < matrices.size(); ++i) {
    const auto rows = static_cast<int64_t>(spoken_labels()[i].size()) + 1;
    ASSERT_EQ(matrices[i].sizes(), at::IntArrayRef({rows, spoken_lengths()[i]}));
    if (spoken_lengths()[i] == 0) continue;
    EXPECT_TRUE(at::allclose(matrices[i].sum(1), at::ones({rows}, at::kDouble)));
  }
}

TEST(AttentionDecoder, SpellsWhatItLearnt) {
  AttentionDecoderOptions options = small_speller(1);
  options.hidden_dim = options.attention_dim = 24;
  const auto decoder = speller(options, at::kFloat);
  const std::vector<int64_t> lengths{8, 5}, ids{0, 1};
  const Encoded memory = spoken_memory(lengths, ids, at::kFloat);
  const std::vector<std::vector<int64_t>> labels{{1, 3, 3, 0, 2}, {2, 0, 4}};
  torch::optim::Adam optimizer(decoder->parameters(), torch::optim::AdamOptions(0.03));
  for (int update = 0; update < 120; ++update) {
    optimizer.zero_grad();
    decoder->losses(packed_labels(labels), memory, {.training = true, .dropout_key = 1})
        .sum()
        .backward();
    optimizer.step();
  }
  decoding::DecodeOptions search;
  search.beam_size = 4;
  decoding::SearchInput input;
  input.src_lengths = lengths;
  input.bos = input.eos = decoder->boundary();
  const auto steps = decoder->start(memory, search.beam_size);
  const auto found = decoding::search(*steps, input, search);
  ASSERT_EQ(found.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].at(0).ids, labels[i]);
    EXPECT_GT(found[i].at(0).log_prob, std::log(0.5));
  }
}

TEST(AttentionDecoder, RefusesLabelsOfOtherUtterances) {
  const auto decoder = speller(small_speller());
  EXPECT_THROW(decoder->losses(packed_labels({{1}, {2}}), spoken_memory({4}), {}), c10::Error);
  const AttentionDecoderPart no_labels{.init = nn::Init(4, at::kCPU), .memory_width = 6};
  EXPECT_THROW(AttentionDecoder(small_speller(), no_labels), c10::Error);
}

TEST(AttentionDecoder, CostsItsProducts) {
  const auto decoder = speller(small_speller(1));
  const double h = 7, e = 4, a = 5, m = kSpellerMemory, labels = 3, rows = 10;
  const double of_row = 3 * a + a + 3 * 5 + m;  // location, score, filters, context
  const double step = 4 * h * (e + h + m) + (h + m) * h + h * (kSpellerLabels + 1) + h * a;
  EXPECT_NEAR(decoder->operations(labels, rows),
              2 * ((labels + 1) * (step + rows * of_row) + rows * m * a), 1e-6);
}

}  // namespace
}  // namespace stretto::models
