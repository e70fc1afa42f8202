#include "families/translation/translation_facts.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "data/text_lines.h"
#include "experiment/scaled_rate.h"
#include "families/text/text_size.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"
#include "models/recurrent_options.h"
#include "models/seq2seq_options.h"

namespace stretto::experiment {
namespace {

// The longer side of the training text; 0 when a file is missing.
int64_t bytes_of_longer_side(const data::DataOptions& data) {
  bool missing = false;
  const auto sum_of = [&](const std::vector<std::string>& paths) {
    const auto bytes = plain_bytes(paths);
    missing = missing || !bytes;
    return bytes.value_or(0);
  };
  const auto of_text = [&](const auto& text) {
    const int64_t src = sum_of(text.train_src) + sum_of(text.train_src2),
                  tgt = sum_of(text.train_tgt);
    // Both sides lie in one TSV file.
    const int64_t both = sum_of(text.train_tsv);
    return std::max(src, tgt) + both / 2;
  };
  int64_t bytes = of_text(data);
  for (const auto& head : data.heads) {
    bytes += std::llround(static_cast<double>(of_text(head)) * head.repeat);
  }
  return missing ? 0 : bytes;
}

// Lines of the target's vocabulary file; 0 with another tokenizer, or when the file is missing.
int64_t entries_in_file(const text::TokenizerOptions& tokenizer) {
  if (tokenizer.type != "vocab") return 0;
  const auto& path = tokenizer.tgt_vocab.empty() ? tokenizer.src_vocab : tokenizer.tgt_vocab;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return 0;  // a pipe would keep us waiting
  std::ifstream file(path);
  int64_t entries = 0;
  for (std::string line; std::getline(file, line);) entries += line.empty() ? 0 : 1;
  return entries;
}

// The heads whose translations `eval.best_metric` scores.
std::vector<Head> heads_with_bleu(const Experiment& e) {
  auto heads = heads_of(e);
  std::erase_if(heads, [&](const Head& head) {
    const std::string& metric = e.eval.best_metric;
    return !head.has_validation() || (metric != "bleu" && metric != head.score("bleu"));
  });
  return heads;
}

int64_t count_validation(const data::DataOptions& data) {
  auto files = data.valid_src;
  files.insert(files.end(), data.valid_tsv.begin(), data.valid_tsv.end());
  data::LinesOfFiles lines(files);
  int64_t count = 0;
  for (std::string_view line; count < kCountedSamples && lines.next(line);) ++count;
  return count;
}

// A mean over heads is as noisy as that of the shortest text.
int64_t sentences_with_bleu(const Experiment& e) {
  int64_t fewest = kCountedSamples;
  const auto heads = heads_with_bleu(e);
  for (const auto& head : heads) {
    fewest = std::min(fewest, known_count([&] { return count_validation(head.data); }));
  }
  return heads.empty() ? 0 : fewest;
}

// On the target's side, where they can be known without opening a model.
int64_t entries_of(const text::TokenizerOptions& tokenizer, int64_t in_file) {
  const bool trained = tokenizer.type != "vocab" && tokenizer.model.empty() &&
                       tokenizer.src_model.empty() && tokenizer.tgt_model.empty();
  return trained ? tokenizer.vocab_size : in_file;
}

}  // namespace

ScoreNoise noise_of_bleu() {
  return {.fewest = 500, .source = "Koehn 2004, aclanthology.org/W04-3250"};
}

FileSizes TranslationFacts::file_sizes(const Experiment& experiment) const {
  const auto& own = translation_of(experiment);
  return {.epoch = tokens_in(bytes_of_longer_side(own.data)),
          .classes = entries_in_file(own.tokenizer),
          .validation = sentences_with_bleu(experiment)};
}

ScoredSamples TranslationFacts::scored_samples(const Experiment& experiment,
                                               const FileSizes& files) const {
  const int64_t most = translation_of(experiment).eval.bleu_sentences;
  if (most > 0 && (files.validation == 0 || most <= files.validation)) {
    return {.count = most, .unit = "sentence", .key = "eval.bleu_sentences", .is_number = true};
  }
  const auto heads = heads_with_bleu(experiment);
  if (heads.empty()) return {};
  const Head& first = heads.front();
  return {.count = files.validation,
          .unit = "sentence",
          .key = first.section + (first.data.valid_src.empty() ? ".valid_tsv" : ".valid_src")};
}

LabelSmoothing TranslationFacts::label_smoothing(const Experiment& experiment,
                                                 const FileSizes& files) const {
  const auto& own = translation_of(experiment);
  return {.key = "loss.label_smoothing",
          .share = own.loss.label_smoothing,
          .classes = entries_of(own.tokenizer, files.classes),
          .one = "entry of the vocabulary",
          .many = "entries of the vocabulary"};
}

MicroBatchSamples TranslationFacts::samples_of_micro_batch(const Experiment& experiment) const {
  const auto& data = translation_of(experiment).data;
  const auto longest = static_cast<double>(std::max(data.max_src_tokens, data.max_tgt_tokens));
  return {.key = "data.max_samples",
          .most = data.max_samples,
          .unit = "sentence",
          .usual_size = std::min(kTokensPerSentence, longest)};
}

int64_t TranslationFacts::num_output_heads(const Experiment& experiment) const {
  return static_cast<int64_t>(translation_of(experiment).model.heads.size());
}

std::vector<std::string> TranslationFacts::deciding_keys(const Experiment& experiment,
                                                         const std::string& deciding_key) const {
  const auto& model = translation_of(experiment).model;
  std::vector<std::string> keys;
  if (deciding_key == "model.encoder.name") {
    for (size_t i = 0; i < model.encoders.size(); ++i) {
      keys.push_back("model.encoders." + std::to_string(i) + ".name");
    }
  } else if (deciding_key == "model.decoder.name") {
    for (size_t i = 0; i < model.heads.size(); ++i) {
      keys.push_back("model.heads." + std::to_string(i) + ".decoder.name");
    }
  }
  if (keys.empty()) keys.push_back(deciding_key);
  return keys;
}

std::optional<TiedEmbedding> TranslationFacts::tied_embedding(const Experiment& experiment) const {
  if (translation_of(experiment).model.tie_embeddings != "all") return std::nullopt;
  return TiedEmbedding{.setting = "model.tie_embeddings = \"all\"",
                       .others = "model.tie_embeddings = \"decoder\" or \"none\""};
}

std::string TranslationFacts::zero_gain_key(const Experiment& experiment) const {
  const auto& model = translation_of(experiment).model;
  return !model.zero_gamma && models::parts_end_in_norm(model) ? "model.zero_gamma" : "";
}

std::string TranslationFacts::two_passes_key(const Experiment& experiment) const {
  return translation_of(experiment).loss.has_r_drop() ? "loss.r_drop" : "";
}

std::vector<NormedUnits> TranslationFacts::normed_units(const Experiment& experiment) const {
  const auto& model = translation_of(experiment).model;
  std::vector<NormedUnits> found;
  const auto look = [&](const auto& part, const std::string& section) {
    if constexpr (requires { part.cell; }) {
      if (!models::norms_units(part.cell)) return;
      found.push_back({part.hidden_dim > 0 ? section + ".hidden_dim" : "model.d_model",
                       part.units(model.d_model)});
    }
  };
  models::each_encoder(model,
                       [&](const models::EncoderChoice& encoder, const std::string& section) {
                         encoder.visit([&](const auto& part) { look(part, section); });
                       });
  const auto decoders = models::decoders_of(model);
  for (size_t head = 0; head < decoders.size(); ++head) {
    const std::string section = models::decoder_section(model, head);
    decoders[head]->visit([&](const auto& part) { look(part, section); });
  }
  return found;
}

std::string TranslationFacts::batch_norm_setting() const {
  return "model.norm_layer = \"batch_norm\"";
}

}  // namespace stretto::experiment
