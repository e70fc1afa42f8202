#include "families/language_model/engine/scored_text.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/text.h"
#include "data/documents/lanes.h"
#include "data/documents/stream_columns.h"
#include "data/documents/stream_windows.h"
#include "experiment/num_threads.h"
#include "families/language_model/engine/language_run.h"
#include "families/language_model/language_model_display.h"
#include "families/language_model/language_model_rules.h"
#include "families/text/engine/batch_tokens.h"
#include "families/text/engine/score_values.h"
#include "models/packed.h"

namespace stretto::tasks {
namespace {

// Lanes that are read together: so few that threads have some each, so many that weights are read
// seldom. The number never depends on threads or processes.
constexpr int64_t kLanesTogether = 8;
constexpr double kBitsPerNat = 1.4426950408889634;  // 1 / ln 2
// Beyond it a text has no words to speak of: few spaces or none, such as Chinese.
constexpr double kMostWordPpl = 1e15;

enum StreamTensor : size_t {
  kLabels,  ///< int64 [R]: the tokens that are scored
  kPlaces,  ///< int64 [R]: their rows; missing where all rows are scored
};

/// Numbers of a window, or of a lane's stretch.
enum ScoreColumn : size_t { kNll, kTokens, kLoss };
constexpr int64_t kNumColumns = 3;

/// The rows that are scored of each sample: the last of them, without those that are left out.
std::vector<int64_t> scored_places(const data::Batch& batch, const StreamPreparation& how) {
  const auto& next = data::stream_next(batch);
  const bool has_context = batch.columns.size() > data::kStreamScored;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < next.num_sequences(); ++i) {
    const int64_t length = next.length(i);
    const int64_t scored = has_context ? data::stream_scored(batch).sequence(i).front() : length;
    const int64_t begin = next.offsets[static_cast<size_t>(i)];
    for (int64_t t = length - scored; t < length; ++t) {
      if (next.values[static_cast<size_t>(begin + t)] != how.left_out) places.push_back(begin + t);
    }
  }
  return places;
}

at::Tensor as_tensor(const std::vector<int64_t>& values) {
  at::Tensor tensor = at::empty({std::ssize(values)}, at::kLong);
  std::ranges::copy(values, tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

/// Scored tokens of each sample.
std::vector<int64_t> scored_counts(const data::Batch& batch, const StreamPreparation& how) {
  std::vector<int64_t> counts(static_cast<size_t>(batch.num_sequences()), 0);
  const auto& offsets = data::stream_next(batch).offsets;
  size_t sample = 0;
  for (const int64_t place : scored_places(batch, how)) {
    while (place >= offsets[sample + 1]) ++sample;
    ++counts[sample];
  }
  return counts;
}

/// Fills the rows of a batch's samples.
void fill_scores(models::CausalModel& model, const at::Tensor& rows, const train::Prepared& batch,
                 const StreamPreparation& how, train::ScoreTable& table) {
  const auto counts = scored_counts(batch, how);
  const auto& ids = batch.batch().sample_ids;
  const ScoredRows scored = scored_rows(rows, batch);
  if (scored.labels.size(0) == 0) return;
  const auto sums = model.head().loss(scored.rows, {.labels = scored.labels});
  const at::Tensor nll = sums.token_nll.to(at::kCPU, at::kDouble).contiguous();
  const double* of_token = nll.const_data_ptr<double>();
  for (size_t i = 0; i < counts.size(); ++i) {
    auto row = table.row(ids[i]);
    for (int64_t t = 0; t < counts[i]; ++t) row[kNll] += *of_token++;
    row[kTokens] = static_cast<double>(counts[i]);
  }
  // The loss of tokens is not known one by one: the first sample has that of all.
  table.row(ids.front())[kLoss] = sums.loss_sum.item<double>();
}

TextScore total(const train::ScoreTable& table) {
  return {.nll = table.sum(kNll),
          .loss = table.sum(kLoss),
          .tokens = static_cast<int64_t>(table.sum(kTokens))};
}

StreamPreparation preparation_of(const experiment::LanguageModelOptions& options,
                                 const data::Documents& documents) {
  if (options.eval.count_ends) return {};
  std::vector<int64_t> separator;
  documents.append(documents.num_ids() - 1, documents.num_ids(), separator);
  return {.left_out = separator.front()};
}

train::ScoreTable score_windows(models::CausalModel& model,
                                std::shared_ptr<const data::StreamWindows> windows,
                                const data::WindowSetting& setting, const StreamPreparation& how,
                                train::EvaluationSetup setup) {
  const int64_t size = windows->size();
  const auto batches = data::make_window_batches(std::move(windows), setting);
  setup.prepare = [&how](data::Batch batch) { return prepare_stream(std::move(batch), how); };
  return train::evaluate(
      train::parts_of(*batches), train::ScoreTable(size, kNumColumns), setup,
      [&](int64_t, std::span<const train::Prepared> batch, train::ScoreTable& table) {
        const auto pass = model.forward(batch.front().rows(), {}, {});
        fill_scores(model, pass.rows, batch.front(), how, table);
      });
}

data::WindowSetting window_setting(const experiment::LanguageModelOptions& options,
                                   int64_t text_begin, at::Device device) {
  const auto window = experiment::eval_window(options);
  return {.length = window.length,
          .stride = window.stride,
          .by_document = options.data.packing == "document",
          .begin = options.eval.window_begin == "separator" ? data::WindowBegin::kTextBegin
                                                            : data::WindowBegin::kTokenBefore,
          .text_begin = text_begin,
          .max_tokens = batch_tokens(options.eval.max_tokens, device),
          .max_samples = options.eval.max_samples};
}

/// Each group of lanes is a part, whose stretches are read one after the other.
train::ScoreTable score_lanes(models::CausalModel& model,
                              const experiment::LanguageModelOptions& options,
                              std::shared_ptr<const data::Documents> documents,
                              const StreamPreparation& how, train::EvaluationSetup setup) {
  const int64_t lanes = options.eval.lanes;
  const int64_t groups = (lanes + kLanesTogether - 1) / kLanesTogether;
  const int64_t tokens = batch_tokens(options.eval.max_tokens, setup.device);
  const int64_t length = std::max<int64_t>(2, tokens / std::min(lanes, kLanesTogether));
  const auto source =
      data::make_lanes(std::move(documents), {.lanes = lanes, .groups = groups, .length = length});
  const int64_t stretches = source->num_batches() / groups;
  if (groups == 1) setup.threads = train::BatchThreads::kAll;
  setup.prepare = {};
  const train::EvaluationParts parts{.count = groups,
                                     .load = [](int64_t) { return std::vector<data::Batch>(); }};
  return train::evaluate(
      parts, train::ScoreTable(lanes * stretches, kNumColumns), setup,
      [&](int64_t group, std::span<const train::Prepared>, train::ScoreTable& table) {
        std::vector<at::Tensor> carry;  // empty: the lanes begin
        for (int64_t i = group; i < source->num_batches(); i += groups) {
          train::Prepared batch = prepare_stream(source->load(/*epoch=*/0, i), how);
          batch.send(setup.device);
          auto pass = model.forward(batch.rows(), carry, {});
          fill_scores(model, pass.rows, batch, how, table);
          carry = std::move(pass.carry);
        }
      });
}

std::string ends_of(const experiment::LanguageModelOptions& options) {
  return options.data.format == "lines" ? "ends of lines" : "ends of documents";
}

}  // namespace

train::Prepared prepare_stream(data::Batch batch, const StreamPreparation& how) {
  train::Prepared made(std::move(batch));
  const data::Batch& stream = made;
  made.add(models::pack(data::stream_inputs(stream), &stream.sample_ids, at::kCPU));
  const auto& next = data::stream_next(stream);
  const bool all = stream.columns.size() <= data::kStreamScored && how.left_out < 0;
  if (all) {
    made.add(made.column(data::kStreamNext));
    return made;
  }
  const auto places = scored_places(stream, how);
  std::vector<int64_t> labels;
  labels.reserve(places.size());
  for (const int64_t place : places) labels.push_back(next.values[static_cast<size_t>(place)]);
  made.add(as_tensor(labels));
  if (std::ssize(places) < next.num_rows()) made.add(as_tensor(places));
  return made;
}

ScoredRows scored_rows(const at::Tensor& rows, const train::Prepared& batch) {
  const at::Tensor& labels = batch.tensor(kLabels);
  if (labels.size(0) == rows.size(0)) return {.rows = rows, .labels = labels};
  return {.rows = rows.index_select(0, batch.tensor(kPlaces)), .labels = labels};
}

ScoredText open_scored_text(const experiment::Experiment& experiment,
                            const text::Tokenizer& tokenizer, const std::vector<std::string>& paths,
                            const std::string& key) {
  const auto& data = language_model_of(experiment).data;
  const auto input = data::input_of(data, paths, key, experiment::num_threads(experiment));
  ScoredText text{.documents = data::open_documents(input, tokenizer),
                  .by_line = data.format == "lines",
                  .begin = text_begin_of(language_model_of(experiment), tokenizer)};
  text.sizes = data::sizes_of_documents(input);
  return text;
}

std::vector<train::Score> scores_of(const TextScore& score) {
  std::vector<train::Score> scores{
      {.name = score_key::kLoss, .value = score.loss / static_cast<double>(score.tokens)}};
  add_nll_scores(score.mean_nll(), scores);
  if (score.bytes > 0) {
    scores.push_back({.name = score_key::kBitsPerByte,
                      .value = score.nll * kBitsPerNat / static_cast<double>(score.bytes)});
  }
  if (score.words > 0) {
    const double word_ppl = std::exp(score.nll / static_cast<double>(score.words));
    if (word_ppl <= kMostWordPpl) {
      scores.push_back({.name = score_key::kWordPpl, .value = word_ppl});
    }
  }
  return scores;
}

std::string context_words(const experiment::LanguageModelOptions& options,
                          const std::string& begin) {
  if (models::carries_state(options.model)) {
    const int64_t lanes = options.eval.lanes;
    return lanes == 1 ? "state carried through the whole text"
                      : "state carried through each of " + std::to_string(lanes) +
                            " parts of the text, from zero";
  }
  const auto window = experiment::eval_window(options);
  std::string words = "windows of " + counted(window.length, "token") + ", ";
  words += window.stride == window.length
               ? "disjoint"
               : "stride " + std::to_string(window.stride) + ", each token scored once";
  words += options.data.packing == "document" ? ", within documents" : ", across documents";
  words += "; the first token of a window behind ";
  if (options.eval.window_begin == "separator") return words + begin;
  return words + "the one before it" +
         (begin == kSeparatorWords ? "" : ", of a text behind " + begin);
}

std::string count_words(const experiment::LanguageModelOptions& options) {
  return ends_of(options) + (options.eval.count_ends ? " counted" : " not counted");
}

TextScore score_text(models::CausalModel& model, const experiment::LanguageModelOptions& options,
                     const ScoredText& text, const std::string& name,
                     const train::EvaluationSetup& setup) {
  const StreamPreparation how = preparation_of(options, *text.documents);
  TextScore score;
  if (models::carries_state(options.model)) {
    data::require_lanes_fit(name, static_cast<int64_t>(text.documents->num_ids()),
                            experiment::eval_lanes(options));
    score = total(score_lanes(model, options, text.documents, how, setup));
  } else {
    const auto setting = window_setting(options, text.begin, setup.device);
    auto windows = std::make_shared<data::StreamWindows>(text.documents, setting);
    score = total(score_windows(model, std::move(windows), setting, how, setup));
  }
  if (!text.sizes) return score;
  const int64_t ends = options.eval.count_ends ? text.documents->size() : 0;
  score.words = text.sizes->words + ends;
  score.bytes = text.sizes->bytes + (text.by_line ? ends : 0);
  return score;
}

std::vector<DocumentScore> score_documents(models::CausalModel& model,
                                           const experiment::LanguageModelOptions& options,
                                           const data::Documents& documents,
                                           const train::EvaluationSetup& setup, int64_t begin) {
  // The caller's documents outlive the windows.
  const std::shared_ptr<const data::Documents> shared(std::shared_ptr<void>(), &documents);
  auto setting = window_setting(options, begin, setup.device);
  setting.by_document = true;
  if (models::carries_state(options.model)) {
    setting.length = setting.stride = std::max<int64_t>(1, documents.counts().longest + 1);
  }
  const StreamPreparation how = preparation_of(options, documents);
  const auto windows = std::make_shared<data::StreamWindows>(shared, setting);
  const auto table = score_windows(model, windows, setting, how, setup);
  std::vector<DocumentScore> scores(static_cast<size_t>(documents.size()));
  for (int64_t i = 0; i < documents.size(); ++i) {
    auto& score = scores[static_cast<size_t>(i)];
    for (int64_t w = windows->first_of(i); w < windows->first_of(i + 1); ++w) {
      score.log_prob -= table.row(w)[kNll];
      score.tokens += static_cast<int64_t>(table.row(w)[kTokens]);
    }
  }
  return scores;
}

}  // namespace stretto::tasks
