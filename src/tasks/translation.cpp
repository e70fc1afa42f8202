#include "tasks/translation.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_info.h"
#include "base/text.h"
#include "dist/numbers.h"
#include "losses/registry.h"
#include "metrics/scorers.h"
#include "models/registry.h"
#include "tasks/ensemble_loss.h"
#include "tasks/session.h"

namespace stretto::tasks {
namespace {

int64_t rounded_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

std::vector<std::string> pieces(const text::Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  std::vector<std::string> out;
  for (const int64_t id : ids) out.push_back(tokenizer.piece(id));
  return out;
}

BatchLoss batch_loss(const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models,
                     const data::Batch& batch, const losses::CrossEntropyOptions& loss) {
  if (models.size() > 1) return ensemble_loss(models, batch, loss);
  const auto output = models.front()->loss(batch, {.training = false});
  return {output.loss_sum.item<double>(), output.nll_sum.item<double>()};
}

// Sums of the loss over a corpus. Each batch is one process's; its numbers are added in the order
// of batches, so that the sum has the same bits for any number of processes.
CorpusScore corpus_loss(const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models,
                        const std::shared_ptr<const data::Corpus>& corpus,
                        const CorpusScoreOptions& options) {
  const torch::NoGradGuard no_grad;
  constexpr size_t kColumns = 3;  // target tokens, loss, nll
  const auto batches = data::make_eval_batches(corpus, options.max_tokens);
  std::vector<double> table(static_cast<size_t>(batches->num_batches()) * kColumns);
  for (int64_t i = options.group.rank(); i < batches->num_batches(); i += options.group.size()) {
    options.group.check_peers();
    const data::Batch batch = batches->load(0, i);
    const BatchLoss sums = batch_loss(models, batch, options.loss);
    double* row = table.data() + static_cast<size_t>(i) * kColumns;
    row[0] = static_cast<double>(batch.tgt.num_tokens());
    row[1] = sums.loss_sum;
    row[2] = sums.nll_sum;
  }
  dist::sum_numbers(options.group, table);  // of zeros and one number: exact
  CorpusScore score;
  for (size_t at = 0; at < table.size(); at += kColumns) {
    score.target_tokens += static_cast<int64_t>(table[at]);
    score.loss += table[at + 1];
    score.nll += table[at + 2];
  }
  score.loss /= static_cast<double>(score.target_tokens);
  score.nll /= static_cast<double>(score.target_tokens);
  return score;
}

// Each process has made some of the texts, the others are empty; afterwards all have all.
void share_texts(const dist::ProcessGroup& group, std::vector<std::string>& texts) {
  if (group.size() == 1) return;
  std::string mine;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    const std::array<uint64_t, 2> head{i, texts[i].size()};
    mine.append(reinterpret_cast<const char*>(head.data()), sizeof(head));
    mine += texts[i];
  }
  for (const auto& bytes : group.all_gather_bytes(mine)) {
    for (size_t at = 0; at < bytes.size();) {
      std::array<uint64_t, 2> head{};
      std::memcpy(head.data(), bytes.data() + at, sizeof(head));
      at += sizeof(head);
      texts.at(head[0]) = bytes.substr(at, head[1]);
      at += head[1];
    }
  }
}

}  // namespace

models::ModelSetup model_setup(const experiment::Experiment& experiment, int64_t src_ids,
                               int64_t tgt_ids, at::Device device) {
  const int64_t multiple = experiment.tokenizer.vocab_multiple;
  return {.src_rows = rounded_up(src_ids, multiple),
          .tgt_rows = rounded_up(tgt_ids, multiple),
          .num_tgt_classes = tgt_ids,
          .seed = static_cast<uint64_t>(experiment.run.seed),
          .device = device};
}

TranslationModel make_translation_model(const experiment::Experiment& experiment,
                                        text::TokenizerPair tokenizers, at::Device device) {
  const auto setup =
      model_setup(experiment, tokenizers.src->size(), tokenizers.tgt->size(), device);
  auto model = models::make_model(experiment.model, setup, losses::make_loss(experiment.loss));
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
    references.push_back(corpus->tgt_text(i));
  }
  Translator translator(models, decode);
  const auto found =
      translator.translate(requests, {.rank = options.group.rank(), .size = options.group.size()},
                           [&] { options.group.check_peers(); });
  score.hypotheses.resize(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].empty()) {
      score.hypotheses[i] = tokenizers.tgt->decode(found[i].front().ids);
    }
  }
  share_texts(options.group, score.hypotheses);
  const auto bleu = metrics::compute({.metric = "bleu"}, score.hypotheses,
                                     std::vector<std::vector<std::string>>{references});
  score.bleu = bleu.score;
  score.bleu_signature = bleu.signature;
  return score;
}

TranslationTask::TranslationTask(const experiment::Experiment& experiment, TranslationModel model,
                                 dist::ProcessGroup group)
    : experiment_(experiment), model_(std::move(model)), group_(std::move(group)) {
  const auto seed = static_cast<uint64_t>(experiment_.run.seed);
  const int64_t threads = num_threads(experiment_);
  train_ =
      data::open_corpus(experiment_.data, data::Split::kTrain, model_.tokenizers, seed, threads);
  if (!experiment_.data.valid_src.empty() || !experiment_.data.valid_tsv.empty()) {
    valid_ =
        data::open_corpus(experiment_.data, data::Split::kValid, model_.tokenizers, seed, threads);
  }
  batches_ = data::make_train_batches(train_, experiment_.data, seed);
}

train::MicroLoss TranslationTask::loss(const data::Batch& batch,
                                       const train::StepContext& context) {
  const auto output = model_.model->loss(
      batch, {.training = true,
              .dropout_key = mix64(context.seed, static_cast<uint64_t>(context.update))});
  return {.loss_sum = output.loss_sum,
          .nll_sum = output.nll_sum.item<double>(),
          .target_tokens = output.target_tokens,
          .source_tokens = batch.src.num_tokens()};
}

train::ValidationResult TranslationTask::validate(bool with_translations) {
  const auto start = std::chrono::steady_clock::now();
  const auto score = score_corpus(model_.tokenizers, {model_.model}, valid_, experiment_.decode,
                                  {.max_tokens = experiment_.eval.max_tokens,
                                   .translate = with_translations,
                                   .num_translated = experiment_.eval.bleu_sentences,
                                   .group = group_});
  return {
      .loss = score.loss,
      .nll = score.nll,
      .target_tokens = score.target_tokens,
      .bleu = score.bleu,
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
      .samples = samples(score.hypotheses)};
}

std::vector<train::SampleTranslation> TranslationTask::samples(
    const std::vector<std::string>& hypotheses) const {
  const auto count =
      std::min<size_t>(hypotheses.size(), static_cast<size_t>(experiment_.report.samples));
  std::vector<train::SampleTranslation> shown(count);
  data::Batch batch;
  for (size_t i = 0; i < count; ++i) {
    const auto sample = static_cast<int64_t>(i);
    auto src = valid_->src(sample);
    std::vector<int64_t> hypothesis;
    model_.tokenizers.tgt->encode(hypotheses[i], hypothesis);
    hypothesis.resize(
        std::min(hypothesis.size(), static_cast<size_t>(model_.model->max_target_length() - 1)));
    hypothesis.push_back(text::kEos);
    shown[i].source = valid_->src_text(sample);
    shown[i].reference = valid_->tgt_text(sample);
    shown[i].hypothesis = hypotheses[i];
    shown[i].source_pieces = pieces(*model_.tokenizers.src, src);
    shown[i].hypothesis_pieces = pieces(*model_.tokenizers.tgt, hypothesis);
    batch.sample_ids.push_back(sample);
    batch.src.ids.insert(batch.src.ids.end(), src.begin(), src.end());
    batch.src.offsets.push_back(static_cast<int32_t>(batch.src.ids.size()));
    batch.tgt.ids.insert(batch.tgt.ids.end(), hypothesis.begin(), hypothesis.end());
    batch.tgt.offsets.push_back(static_cast<int32_t>(batch.tgt.ids.size()));
  }
  if (count == 0) return shown;
  torch::NoGradGuard no_grad;
  const auto maps = model_.model->alignments(batch, experiment_.decode.alignment_layer);
  for (size_t i = 0; i < count; ++i) {
    const auto map = maps[i].cpu().contiguous();
    for (int64_t row = 0; row < map.size(0); ++row) {
      const float* begin = map.const_data_ptr<float>() + row * map.size(1);
      shown[i].attention.emplace_back(begin, begin + map.size(1));
    }
  }
  return shown;
}

std::vector<dist::Fact> TranslationTask::text_facts() const {
  return {corpus_fact("training text", train_.get()),
          corpus_fact("validation text", valid_.get()),
          {"micro-batches an epoch", std::to_string(batches_->num_batches())}};
}

std::vector<std::pair<std::string, std::string>> TranslationTask::facts() const {
  const auto& filters = train_->filters();
  std::vector<std::pair<std::string, std::string>> facts{
      {"parameters", with_thousands(models::num_parameters(*model_.model))},
      {"vocabulary", model_.tokenizers.joint
                         ? with_thousands(model_.tokenizers.src->size()) + " (joint)"
                         : with_thousands(model_.tokenizers.src->size()) + " / " +
                               with_thousands(model_.tokenizers.tgt->size())},
      {"training pairs", with_thousands(train_->num_pairs())},
      {"training tokens", with_thousands(train_->num_src_tokens()) + " source, " +
                              with_thousands(train_->num_tgt_tokens()) + " target"},
      {"micro-batches an epoch", with_thousands(batches_->num_batches())},
      {"token cache", human_bytes(train_->cache_bytes())}};
  const auto skipped = [&](const char* why, int64_t count) {
    if (count > 0) facts.emplace_back(std::string("left out: ") + why, with_thousands(count));
  };
  skipped("empty", filters.empty);
  skipped("too long", filters.too_long);
  skipped("length ratio", filters.ratio);
  skipped("invalid UTF-8", filters.invalid_utf8);
  if (filters.truncated > 0) facts.emplace_back("truncated", with_thousands(filters.truncated));
  if (filters.replaced > 0) {
    facts.emplace_back("invalid UTF-8 replaced", with_thousands(filters.replaced));
  }
  if (valid_) facts.emplace_back("validation pairs", with_thousands(valid_->num_pairs()));
  return facts;
}

}  // namespace stretto::tasks
