#include "families/translation/engine/translation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/random_streams.h"
#include "base/text.h"
#include "data/mixed_batches.h"
#include "data/pairs/pair_columns.h"
#include "data/pairs/two_sources.h"
#include "experiment/num_threads.h"
#include "experiment/scaled_rate.h"
#include "families/text/engine/score_values.h"
#include "families/translation/engine/corpus_fact.h"
#include "families/translation/engine/ensemble_loss.h"
#include "families/translation/engine/head_scores.h"
#include "families/translation/engine/initial_run.h"
#include "families/translation/engine/shortlist_file.h"
#include "families/translation/engine/teacher.h"
#include "families/translation/known_pairs.h"
#include "families/translation/translation_display.h"
#include "families/translation/translation_options.h"
#include "losses/registry.h"
#include "metrics/scorers.h"
#include "models/registry.h"
#include "tasks/left_out.h"
#include "train/evaluation.h"

namespace stretto::tasks {
namespace {

// What references are marked with, by the first of them.
text::Subwords marks_of(const data::Corpus& corpus) {
  constexpr int64_t kEnough = 1000;
  std::vector<std::string> tokens;
  for (int64_t i = 0; i < std::min(kEnough, corpus.num_pairs()); ++i) {
    for (auto& token : split(corpus.tgt_text(i), ' ')) tokens.push_back(std::move(token));
  }
  return text::find_subwords(tokens);
}

std::vector<std::string> pieces(const text::Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  std::vector<std::string> out;
  for (const int64_t id : ids) out.push_back(tokenizer.piece(id));
  return out;
}

CorpusScore corpus_loss(const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models,
                        const std::shared_ptr<const data::Corpus>& corpus,
                        const CorpusScoreOptions& options) {
  const auto batches = data::make_eval_batches(corpus, options.max_tokens, options.max_samples);
  train::ScoreTable pairs(options.per_pair ? corpus->num_pairs() : 0, /*num_columns=*/1);
  const auto sums = train::evaluate_sums(
      *batches, /*num_sums=*/3,
      {.group = options.group, .threads = train::BatchThreads::kAll, .loading = options.loading},
      [&](const data::Batch& batch) -> std::vector<double> {
        const BatchLoss loss = batch_loss(models, batch, options.loss);
        for (size_t k = 0; options.per_pair && k < loss.pair_nll.size(); ++k) {
          pairs.row(batch.sample_ids[k])[0] = loss.pair_nll[k];
        }
        return {static_cast<double>(data::target(batch).num_rows()), loss.loss_sum, loss.nll_sum};
      });
  CorpusScore score{.loss = sums[1] / sums[0],
                    .nll = sums[2] / sums[0],
                    .target_tokens = static_cast<int64_t>(sums[0])};
  if (!options.per_pair) return score;
  pairs.merge(options.group);
  for (int64_t i = 0; i < corpus->num_pairs(); ++i) score.pair_nll.push_back(pairs.row(i)[0]);
  return score;
}

std::pair<std::string, std::string> cut_fact(const std::string& name, const data::Corpus& corpus) {
  return {name, counted(corpus.filters().truncated, "pair") + ": " +
                    data::cut_text(corpus.src_counts(), corpus.tgt_counts())};
}

}  // namespace

models::ModelSetup model_setup(const experiment::Experiment& experiment, int64_t src_ids,
                               int64_t tgt_ids, at::Device device) {
  const int64_t multiple = translation_of(experiment).tokenizer.vocab_multiple;
  return {.src_rows = text::table_rows(src_ids, multiple),
          .tgt_rows = text::table_rows(tgt_ids, multiple),
          .num_tgt_classes = tgt_ids,
          .seed = static_cast<uint64_t>(experiment.run.seed),
          .device = device};
}

std::string split_beforehand(const text::TokenizerOptions& options,
                             const text::Tokenizer& tokenizer, const data::Corpus* corpus) {
  if (options.type != "vocab") {
    const auto found = corpus == nullptr ? text::Subwords::kNone : marks_of(*corpus);
    if (found == text::Subwords::kNone) return "";
    return std::string("looks split into sub-words (") + text::name_of(found) +
           "): BLEU is that of pieces; tokenizer.type = \"vocab\" joins them";
  }
  if (tokenizer.subwords() == text::Subwords::kNone) {
    return "split at spaces beforehand: BLEU is that of its tokens";
  }
  return std::string("split into sub-words (") + text::name_of(tokenizer.subwords()) +
         "): joined in translations and for BLEU (tokenizer.subwords)";
}

TranslationModel make_translation_model(const experiment::Experiment& experiment,
                                        text::TokenizerPair tokenizers, at::Device device,
                                        FirstWeights weights) {
  auto setup = model_setup(experiment, tokenizers.src->size(), tokenizers.tgt->size(), device);
  setup.src_specials = tokenizers.src->specials();
  setup.tgt_specials = tokenizers.tgt->specials();
  setup.draws_weights = weights == FirstWeights::kDrawn;
  auto model = models::make_model(translation_of(experiment).model, setup,
                                  losses::make_loss(translation_of(experiment).loss),
                                  losses::make_pair_loss(translation_of(experiment).loss));
  return {std::move(tokenizers), std::move(model)};
}

CorpusScore score_corpus(const text::TokenizerPair& tokenizers,
                         const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models,
                         const std::shared_ptr<const data::Corpus>& corpus,
                         const decoding::DecodeOptions& decode, const CorpusScoreOptions& options) {
  CorpusScore score = corpus_loss(models, corpus, options);
  if (!options.translate) return score;
  const int64_t count = options.num_translated > 0
                            ? std::min(options.num_translated, corpus->num_pairs())
                            : corpus->num_pairs();
  std::vector<TranslationRequest> requests;
  std::vector<std::string> references;
  for (int64_t i = 0; i < count; ++i) {
    requests.push_back({.src = corpus->src(i), .prefix = {}, .sentence_id = i});
    references.push_back(tokenizers.tgt->readable(corpus->tgt_text(i)));
  }
  const Translator translator(models, decode, options.shortlist);
  score.outputs = translator.translate(requests, options.group);
  for (const auto& ids : score.outputs) score.hypotheses.push_back(tokenizers.tgt->decode(ids));
  const auto bleu = metrics::compute({.metric = "bleu"}, score.hypotheses,
                                     std::vector<std::vector<std::string>>{references});
  score.bleu = bleu.score;
  score.bleu_signature = bleu.signature;
  return score;
}

TranslationTask::TranslationTask(const experiment::Experiment& experiment, TranslationModel model,
                                 distributed::ProcessGroup group)
    : experiment_(experiment), model_(std::move(model)), group_(std::move(group)) {
  for (const auto& head : experiment::heads_of(experiment_)) {
    parts_.push_back(open_part(head, parts_.size()));
  }
  shortlist_ = open_shortlist(options_.decode, model_.tokenizers);
  batches_ = make_batches();
  teachers_ =
      load_teachers(experiment_, model_.tokenizers, model_.model->parameters().front().device());
}

TranslationTask::Part TranslationTask::open_part(const experiment::Head& head,
                                                 size_t number) const {
  const auto seed = static_cast<uint64_t>(experiment_.run.seed);
  const int64_t threads = experiment::num_threads(experiment_);
  const auto open = [&](data::Split split) {
    return data::open_corpus(head.data, split, model_.tokenizers, seed, threads);
  };
  return {.head = head,
          .train = open(data::Split::kTrain),
          .valid = head.has_validation() ? open(data::Split::kValid) : nullptr,
          .model = head.name.empty() ? model_.model : model_.model->head(number)};
}

std::unique_ptr<data::BatchSource> TranslationTask::make_batches() const {
  const auto seed = static_cast<uint64_t>(experiment_.run.seed);
  std::vector<data::MixedSource> sources;
  int64_t first_sample_id = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto& [head, train, valid, model] = parts_[i];
    auto own = data::make_train_batches(
        train, head.data, i == 0 ? seed : mix64(seed, streams::kHeads + i),
        {.src = text::make_sampler(*model_.tokenizers.src, head.data.src_subword_sampling,
                                   "data.src_subword_sampling"),
         .tgt = text::make_sampler(*model_.tokenizers.tgt, head.data.tgt_subword_sampling,
                                   "data.tgt_subword_sampling")});
    if (!has_heads()) return own;
    sources.push_back(
        {.batches = std::move(own), .repeat = head.repeat, .first_sample_id = first_sample_id});
    first_sample_id += train->num_pairs();
  }
  return data::mix_batches(std::move(sources));
}

train::TaskWords TranslationTask::words() const {
  return {.sample = "sentence",
          .samples = "sentences",
          .smaller_batches =
              "lower data.max_tokens (raise train.update_freq by the same factor to "
              "keep the batch), or data.max_src_tokens and data.max_tgt_tokens",
          .odd_samples = "data.max_ratio and data.max_src_tokens leave out the odd ones",
          .stabilising_setting =
              models::norms_come_first(options_.model) ? "" : "model.norm = \"pre\""};
}

std::vector<std::pair<std::string, std::string>> TranslationTask::show(const data::Batch& batch,
                                                                       int64_t index) const {
  const auto ids_of = [&](const data::PackedTokens& side) {
    const auto ids = side.sequence(index);
    return std::vector<int64_t>(ids.begin(), ids.end());
  };
  const auto source = ids_of(data::source(batch));
  const text::Tokenizer& reader = *model_.tokenizers.src;
  std::vector<std::pair<std::string, std::string>> shown{
      {"source", models::has_two_encoders(options_.model) ? data::decode_sources(reader, source)
                                                          : reader.decode(source)},
      {"target", model_.tokenizers.tgt->decode(ids_of(data::target(batch)))}};
  if (has_heads()) {
    const auto& part = parts_.at(static_cast<size_t>(batch.stream));
    shown.insert(shown.begin(), {"head", part.head.name});
  }
  return shown;
}

std::vector<std::string> TranslationTask::losses() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) names.push_back(part.head.score(score_key::kLoss));
  return names;
}

train::Prepared TranslationTask::prepare(data::Batch batch) const {
  train::Prepared made(std::move(batch));
  auto tensors = model_.model->tensors_of(made, /*training=*/true, at::kCPU);
  made.add(std::move(tensors.src));
  made.add(std::move(tensors.tgt));
  made.add(std::move(tensors.targets));
  return made;
}

train::Sums TranslationTask::loss(const train::Prepared& batch, const train::StepContext& context) {
  const models::PairTensors tensors{
      .src = batch.rows(0), .tgt = batch.rows(1), .targets = batch.tensor()};
  const auto taught = rows_of_teachers(teachers_, batch, tensors);
  const losses::TeacherScope teachers(taught);
  const auto output =
      model_.model->loss(batch, tensors, {.training = true, .dropout_key = context.dropout_key()});
  train::Sums sums{.losses = {},
                   .statistics = {},
                   .counts = {output.target_tokens, data::source(batch).num_rows()}};
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (i != static_cast<size_t>(batch.batch().stream)) {
      sums.losses.push_back(at::zeros_like(output.loss_sum.detach()));
      sums.statistics.push_back(at::zeros_like(output.nll_sum));
      continue;
    }
    const double weight = parts_[i].head.weight;
    sums.losses.push_back(weight == 1 ? output.loss_sum : output.loss_sum * weight);
    sums.statistics.push_back(output.nll_sum);
  }
  if (options_.loss.has_r_drop()) sums.statistics.push_back(output.kl_sum);
  return sums;
}

std::vector<std::string> TranslationTask::statistics() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) names.push_back(part.head.score(score_key::kNll));
  if (options_.loss.has_r_drop()) names.emplace_back(score_key::kKl);
  return names;
}

std::vector<double> TranslationTask::weights(const data::Batch& batch) const {
  std::vector<double> weights(parts_.size(), 0);
  weights.at(static_cast<size_t>(batch.stream)) =
      static_cast<double>(data::target(batch).num_rows());
  return weights;
}

double TranslationTask::shown_loss(const train::Totals& totals) const {
  if (!has_heads()) return totals.loss();
  double sum = 0, tokens = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    sum += totals.losses[i] / parts_[i].head.weight;
    tokens += totals.weights[i];
  }
  return sum / tokens;
}

std::vector<train::Score> TranslationTask::measures(const train::Totals& totals) const {
  double sum = 0, tokens = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    sum += totals.statistics.at(i);
    tokens += totals.weights.at(i);
  }
  std::vector<train::Score> scores;
  add_nll_scores(sum / tokens, scores);
  if (options_.loss.has_r_drop()) {
    scores.push_back(
        {.name = score_key::kKl, .value = totals.statistics.at(parts_.size()) / tokens});
  }
  for (size_t i = 0; has_heads() && i < parts_.size(); ++i) {
    if (totals.weights[i] == 0) continue;  // the update has no batch of it
    add_nll_scores(totals.statistics[i] / totals.weights[i], scores, parts_[i].head.score(""));
  }
  return scores;
}

bool TranslationTask::can_validate() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.valid != nullptr; });
}

train::Validation TranslationTask::validate() {
  std::vector<HeadScore> heads;
  train::Validation result;
  const auto most = static_cast<size_t>(experiment_.report.samples);
  for (const Part& part : parts_) {
    if (!part.valid) continue;
    heads.push_back(
        {part.head.name, score_corpus(model_.tokenizers, {part.model}, part.valid, options_.decode,
                                      {.max_tokens = options_.eval.max_tokens,
                                       .max_samples = options_.eval.max_samples,
                                       .translate = options_.eval.bleu,
                                       .num_translated = options_.eval.bleu_sentences,
                                       .shortlist = shortlist_,
                                       .group = group_,
                                       .loading = loading()})});
    for (auto& sample :
         samples(part, heads.back().score, (most + parts_.size() - 1) / parts_.size())) {
      result.samples.push_back(std::move(sample));
    }
  }
  result.scores = scores_of(heads);
  result.counts = {{"target tokens", overall(heads).target_tokens}};
  return result;
}

std::vector<report::Sample> TranslationTask::samples(const Part& part, const CorpusScore& score,
                                                     size_t most) const {
  const auto count = std::min(score.outputs.size(), most);
  const std::string mark = part.head.name.empty() ? "" : "[" + part.head.name + "] ";
  std::vector<report::TextPairSample> shown(count);
  data::Batch batch = data::pair_batch();
  for (size_t i = 0; i < count; ++i) {
    const auto sample = static_cast<int64_t>(i);
    auto src = part.valid->src(sample);
    std::vector<int64_t> hypothesis = score.outputs[i];
    hypothesis.resize(
        std::min(hypothesis.size(), static_cast<size_t>(part.model->max_target_length() - 1)));
    hypothesis.push_back(model_.tokenizers.tgt->specials().eos);
    const std::string source = part.valid->src_text(sample);
    shown[i].input = mark + (models::has_two_encoders(options_.model)
                                 ? data::readable_sources(*model_.tokenizers.src, source)
                                 : model_.tokenizers.src->readable(source));
    shown[i].reference = model_.tokenizers.tgt->readable(part.valid->tgt_text(sample));
    shown[i].output = score.hypotheses[i];
    shown[i].input_pieces = pieces(*model_.tokenizers.src, src);
    shown[i].output_pieces = pieces(*model_.tokenizers.tgt, hypothesis);
    batch.sample_ids.push_back(sample);
    data::source(batch).append(src);
    data::target(batch).append(hypothesis);
  }
  if (count == 0) return {};
  torch::NoGradGuard no_grad;
  const auto maps = part.model->alignments(batch, options_.decode.alignment_layer);
  for (size_t i = 0; i < count; ++i) {
    const auto map = maps[i].cpu().contiguous();
    for (int64_t row = 0; row < map.size(0); ++row) {
      const float* begin = map.const_data_ptr<float>() + row * map.size(1);
      shown[i].attention.emplace_back(begin, begin + map.size(1));
    }
  }
  return {shown.begin(), shown.end()};
}

int64_t TranslationTask::update_bound() const {
  return std::llround(experiment::ScaledRate(experiment_).batch);
}

std::vector<distributed::Fact> TranslationTask::data_facts() const {
  std::vector<distributed::Fact> facts;
  for (const Part& part : parts_) {
    facts.push_back(corpus_fact(part.head.called("training text"), part.train.get()));
    facts.push_back(corpus_fact(part.head.called("validation text"), part.valid.get()));
  }
  facts.push_back({"micro-batches an epoch", std::to_string(batches_->num_batches())});
  return facts;
}

void TranslationTask::require_known_data(bool warn) const {
  const auto look = [&](const std::string& name, const data::Corpus& corpus) {
    experiment::require_known(name, corpus.src_counts(), corpus.tgt_counts(), model_.tokenizers,
                              experiment_, warn);
  };
  for (const Part& part : parts_) {
    look(part.head.called("training text"), *part.train);
    if (part.valid) look(part.head.called("validation text"), *part.valid);
  }
}

std::vector<runs::MatchedTable> TranslationTask::matched_tables(const runs::InitialRun& run) const {
  return tasks::matched_tables(run, model_.tokenizers, *model_.model);
}

std::vector<std::pair<std::string, std::string>> TranslationTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts{
      {"parameters", with_thousands(models::num_parameters(*model_.model))},
      {"vocabulary", model_.tokenizers.joint
                         ? with_thousands(model_.tokenizers.src->size()) + " (joint)"
                         : with_thousands(model_.tokenizers.src->size()) + " / " +
                               with_thousands(model_.tokenizers.tgt->size())}};
  for (const Part& part : parts_) add_train_facts(part, facts);
  facts.emplace_back("micro-batches an epoch", with_thousands(batches_->num_batches()));
  for (const Part& part : parts_) add_filter_facts(part, facts);
  for (const Part& part : parts_) add_valid_facts(part, facts);
  return facts;
}

std::vector<std::string> TranslationTask::notes() const {
  std::vector<std::string> notes;
  for (const Part& part : parts_) {
    add_note_of_left_out(part.head.called("training text"), part.train->filters().left_out, notes);
    if (!part.valid) continue;
    add_note_of_left_out(part.head.called("validation text"), part.valid->filters().left_out,
                         notes);
  }
  return notes;
}

void TranslationTask::add_train_facts(
    const Part& part, std::vector<std::pair<std::string, std::string>>& facts) const {
  facts.emplace_back(part.head.called("training pairs"), with_thousands(part.train->num_pairs()));
  facts.emplace_back(part.head.called("training tokens"),
                     with_thousands(part.train->num_src_tokens()) + " source, " +
                         with_thousands(part.train->num_tgt_tokens()) + " target");
}

void TranslationTask::add_filter_facts(
    const Part& part, std::vector<std::pair<std::string, std::string>>& facts) const {
  const auto& filters = part.train->filters();
  facts.emplace_back(part.head.called("token cache"), human_bytes(part.train->cache_bytes()));
  const std::string split =
      split_beforehand(options_.tokenizer, *model_.tokenizers.tgt, part.valid.get());
  if (!split.empty()) facts.emplace_back(part.head.called("target text"), split);
  const auto skipped = [&](const std::string& why, int64_t count) {
    if (count > 0) facts.emplace_back(part.head.called("left out: " + why), with_thousands(count));
  };
  skipped("empty", filters.empty);
  skipped("too long", filters.too_long);
  skipped("length ratio", filters.ratio);
  skipped("invalid UTF-8", filters.invalid_utf8);
  if (filters.left_out.count > 0) {
    facts.emplace_back(part.head.called("training text, left out"), filters.left_out.text());
  }
  if (filters.truncated > 0) facts.push_back(cut_fact(part.head.called("truncated"), *part.train));
  if (filters.replaced > 0) {
    facts.emplace_back(part.head.called("invalid UTF-8 replaced"),
                       with_thousands(filters.replaced));
  }
  for (auto& fact : experiment::known_text_facts(part.head.called("training text"), *part.train)) {
    facts.push_back(std::move(fact));
  }
}

void TranslationTask::add_valid_facts(
    const Part& part, std::vector<std::pair<std::string, std::string>>& facts) const {
  if (!part.valid) return;
  facts.emplace_back(part.head.called("validation pairs"), with_thousands(part.valid->num_pairs()));
  if (const auto& left_out = part.valid->filters().left_out; left_out.count > 0) {
    facts.emplace_back(part.head.called("validation text, left out"), left_out.text());
  }
  if (part.valid->filters().truncated > 0) {
    facts.push_back(cut_fact(part.head.called("validation text, truncated"), *part.valid));
  }
  for (auto& fact :
       experiment::known_text_facts(part.head.called("validation text"), *part.valid)) {
    facts.push_back(std::move(fact));
  }
}

}  // namespace stretto::tasks
