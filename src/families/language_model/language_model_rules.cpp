#include "families/language_model/language_model_rules.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/documents/causal_text.h"
#include "data/documents/document_texts.h"
#include "data/documents/documents_build.h"
#include "data/documents/documents_count.h"
#include "data/documents/json_documents.h"
#include "data/documents/tokenizer_lines.h"
#include "experiment/preflight.h"
#include "families/language_model/language_model_display.h"
#include "families/language_model/language_model_taken.h"
#include "families/text/document_preflight.h"
#include "families/text/text_rules.h"
#include "families/text/text_size.h"
#include "models/option_conflicts.h"

namespace stretto::experiment {
namespace {

bool carries_state(const Experiment& experiment) {
  return models::carries_state(language_model_sections(experiment).model);
}

/// @param by  of a configuration that may be wrong: less than 1 counts as 1
int64_t divided_up(int64_t number, int64_t by) {
  by = std::max<int64_t>(by, 1);
  return number / by + (number % by > 0 ? 1 : 0);
}

void check_documents(RuleCheck& c, const data::CausalTextOptions& data) {
  const bool has_marker = data.format == "documents" && data.documents == "marker";
  if (has_marker && (data.marker.empty() || data.marker.find('\n') != std::string::npos)) {
    c.wrong({"data.marker", "data.documents", "data.format"},
            data.marker.empty() ? "no line is a marker" : "a marker is one line",
            "give the line that stands between two documents");
  }
  if (data.format == "jsonl" && data.key.empty()) {
    c.wrong({"data.key", "data.format"}, "no string of an object is its text",
            "name the key of the text");
  }
}

void check_stops(RuleCheck& c, const decoding::GenerationOptions& decode) {
  if (std::ranges::find(decode.stop, std::string()) == decode.stop.end()) return;
  c.wrong({"decode.stop"}, "an empty text is no stop string", "leave it out; [] stops at no text");
}

void check_lanes(RuleCheck& c, const data::CausalTextOptions& data) {
  if (c.e.train.update_freq <= data.lanes) return;
  c.wrong({"train.update_freq", "data.lanes"},
          counted(data.lanes, "lane") + " cannot be cut into " +
              counted(c.e.train.update_freq, "micro-batch"),
          "lower it to " + std::to_string(data.lanes) + " or less, or raise data.lanes");
}

void check_windows(RuleCheck& c, const LanguageModelOptions& own) {
  const int64_t positions = models::max_length_of(own.model);
  if (own.data.max_text_tokens > positions) {
    c.wrong({"data.max_text_tokens", "model.max_positions", "model.positions"},
            counted(positions, "learned position") + ", sequences may have " +
                counted(own.data.max_text_tokens, "token"),
            "lower it to " + std::to_string(positions) + ", or raise model.max_positions");
  }
  if (own.eval.window > positions) {
    c.wrong({"eval.window", "model.max_positions", "model.positions"},
            counted(positions, "learned position") + ", a window may have " +
                counted(own.eval.window, "token"),
            "lower it to " + std::to_string(positions) + " or less");
  }
  const int64_t length = eval_window(own).length;
  if (own.eval.stride > length) {
    c.wrong({"eval.stride", "eval.window", "data.max_text_tokens"},
            "windows of " + counted(length, "token") + " would leave out tokens between them",
            "lower it to " + std::to_string(length) + " or less");
  }
}

/// A sum over some tokens of the vocabulary is no place for what is spread over all of them.
void check_samples(RuleCheck& c, const LanguageModelOptions& own) {
  if (own.loss.sampled_tokens > 0 && own.loss.label_smoothing > 0) {
    c.wrong({"loss.sampled_tokens", "loss.label_smoothing"},
            "a loss from samples has no label smoothing", "set one of the two to 0");
  }
}

/// JSON that is read as it stands, most likely by mistake.
void doubt_json(const data::CausalTextOptions& data, Preflight& found) {
  if (data.format == "jsonl") return;
  const auto json = std::ranges::find_if(data.train, &data::is_named_json_lines);
  if (json == data.train.end()) return;
  found.doubts.push_back({"data.format",
                          printable(*json, 400) + " is called like JSON lines, and \"" +
                              data.format + "\" reads brackets and keys as text",
                          "set data.format = \"jsonl\", and data.key to the key of the text"});
}

constexpr const char* kGroupsKey = "model.adaptive_softmax.cutoffs";

/// What training with a softmax of groups excludes.
void check_groups(RuleCheck& c, const LanguageModelOptions& own) {
  if (!models::adaptive_softmax_of(own.model).is_on()) return;
  if (own.loss.sampled_tokens > 0) {
    c.wrong({"loss.sampled_tokens", kGroupsKey}, "an adaptive softmax has no sum to estimate",
            "set loss.sampled_tokens = 0, or leave the cutoffs out");
  }
  if (own.loss.label_smoothing > 0) {
    c.wrong({"loss.label_smoothing", kGroupsKey},
            "an adaptive softmax has few of the tokens that probability would be spread over",
            "set loss.label_smoothing = 0, or leave the cutoffs out");
  }
  // Rows of its own matrices stand by groups, not by tokens.
  const auto& train = c.e.train;
  const bool has_own_rows = !models::ties_output(own.model) && train.init_only.empty();
  if (!train.init_from.empty() && train.init_vocabulary == "match" && has_own_rows) {
    c.wrong({"train.init_vocabulary", "train.init_only", kGroupsKey, "model.tie_embeddings"},
            "the rows of an adaptive softmax are not matched with pieces of another vocabulary",
            "take the layers alone, train.init_only = [\"decoder.*\"], or set "
            "model.tie_embeddings = true");
  }
}

class LanguageModelRules final : public TextRules {
 public:
  void check_model(RuleCheck& check) const override {
    const LanguageModelOptions& own = language_model_sections(check.e);
    for (const auto& conflict : models::option_conflicts(own.model)) {
      check.wrong(conflict.keys, conflict.what, conflict.hint);
    }
    // The size of another tokenizer shows when it is read.
    const bool is_trained = own.tokenizer.model.empty() && !takes_tokenizer_of_other_run(check.e);
    if (is_trained) {
      for (const auto& conflict :
           models::vocabulary_conflicts(own.model, own.tokenizer.vocab_size)) {
        check.wrong(conflict.keys, conflict.what, conflict.hint);
      }
    }
    TextRules::check_model(check);
  }

  void check_data(RuleCheck& check) const override {
    const LanguageModelOptions& own = language_model_sections(check.e);
    check_documents(check, own.data);
    check_stops(check, own.decode);
    if (carries_state(check.e)) return check_lanes(check, own.data);
    TextRules::check_data(check);
    check_windows(check, own);
  }

  void check_training(RuleCheck& check) const override {
    TextRules::check_training(check);
    check_samples(check, language_model_sections(check.e));
    check_groups(check, language_model_sections(check.e));
  }

  TextSections sections(const Experiment& experiment) const override {
    return sections_of(language_model_sections(experiment));
  }

  std::optional<models::CausalModelOptions> causal_stack(
      const Experiment& experiment) const override {
    return language_model_sections(experiment).model;
  }

  std::unique_ptr<text::LineSource> training_text(const Experiment& experiment) const override {
    const auto& data = language_model_sections(experiment).data;
    return data::open_tokenizer_lines(
        data::input_of(data, data.train, "data.train", /*threads=*/1));
  }

  Preflight look_at_texts(const Experiment& experiment, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const override {
    const auto& data = language_model_sections(experiment).data;
    const auto input = data::input_of(data, data.train, "data.train", /*threads=*/1);
    Preflight found =
        look_at_documents(data, known, how, [&input](const std::string& path, auto& bad) {
          return data::DocumentTexts(path, input, &bad);
        });
    doubt_json(data, found);
    const auto& own = language_model_sections(experiment);
    const std::string doubt = doubt_of_groups(own);
    if (!doubt.empty()) {
      const bool has_groups = models::adaptive_softmax_of(own.model).is_on();
      found.doubts.push_back(
          {has_groups ? kGroupsKey : "loss.sampled_tokens", doubt,
           "use tokenizer.type = \"word\", or leave it out: one softmax over some thousands of "
           "sub-words costs little"});
    }
    return found;
  }

  // A trained vocabulary may have fewer tokens than tokenizer.vocab_size.
  void require_tokenizer(const Experiment& experiment,
                         const text::Tokenizer& tokenizer) const override {
    end_tokens_of(language_model_sections(experiment), tokenizer);
    const auto conflicts =
        models::vocabulary_conflicts(language_model_sections(experiment).model, tokenizer.size());
    if (conflicts.empty()) return;
    throw Error(ExitCode::kUsage, conflicts.front().keys.front() + ": " + conflicts.front().what,
                conflicts.front().hint);
  }

  // A text that was read whole shows whether lanes fit, too.
  SeenTokens count_tokens(const Experiment& experiment, const std::string& key,
                          const std::vector<std::string>& files, const text::Tokenizer& tokenizer,
                          const PreflightTimer& time) const override {
    const LanguageModelOptions& own = language_model_sections(experiment);
    const int64_t length = own.data.max_text_tokens;
    int64_t sequences = 0;  // of documents apart
    auto seen = data::count_tokens_of_documents(
        data::input_of(own.data, files, key, /*threads=*/1), tokenizer,
        [&time] { return time.is_left(); },
        [&](int64_t tokens) { sequences += divided_up(tokens + 1, length); });
    const int64_t ids = seen.tokens + seen.documents;
    const bool is_training = key == "data.train";
    SeenTokens found{.counts = {.tokens = ids, .unknown = seen.unknown},
                     .unread = std::move(seen.unread)};
    if (!found.unread.empty()) return found;
    if (models::carries_state(own.model)) {
      data::require_lanes_fit(is_training ? "training text" : "validation text", ids,
                              is_training ? training_lanes(own) : eval_lanes(own));
    } else if (is_training) {
      found.samples = own.data.packing == "document" ? sequences : divided_up(ids, length);
    }
    return found;
  }

  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return tasks::language_model_scores();
  }

  BatchBound micro_batch(const Experiment& experiment) const override {
    if (!carries_state(experiment)) return TextRules::micro_batch(experiment);
    return {.key = "data.lanes", .value = micro_batch_tokens(experiment), .unit = "tokens"};
  }

  bool has_carry(const Experiment& experiment) const override { return carries_state(experiment); }

  std::vector<std::string> init_rules(const Experiment& experiment) const override {
    return models::init_of(language_model_sections(experiment).model);
  }
  const nn::LoraOptions* lora(const Experiment& experiment) const override {
    return &models::lora_of(language_model_sections(experiment).model);
  }
  const nn::AdapterOptions* adapter(const Experiment& experiment) const override {
    return &models::adapter_of(language_model_sections(experiment).model);
  }
  ModelWidth model_width(const Experiment& experiment) const override {
    return {.key = "model.d_model",
            .value = models::d_model_of(language_model_sections(experiment).model)};
  }

  std::vector<ModelDifference> hidden_differences(
      const Experiment& theirs, const Experiment& own,
      const std::vector<std::string>& stored) const override {
    return language_model_differences(theirs, own, stored);
  }
  std::vector<TakenValue> values_of_other_model(const OtherModel& other, const Experiment& own,
                                                const config::Origins& given) const override {
    return language_model_values_of(other, own, given);
  }

  // Characters are bytes, about.
  FileSizes file_sizes(const Experiment& experiment) const override {
    const LanguageModelOptions& own = language_model_sections(experiment);
    const auto tokens = [&](const std::vector<std::string>& files) {
      const int64_t bytes = plain_bytes(files).value_or(0);
      return own.tokenizer.type == "char" ? bytes : tokens_in(bytes);
    };
    return {.epoch = tokens(own.data.train),
            .classes = own.loss.label_smoothing > 0 ? own.tokenizer.vocab_size : 0,
            .validation = std::min(tokens(own.data.valid), kCountedSamples)};
  }

  ScoredSamples scored_samples(const Experiment& /*experiment*/,
                               const FileSizes& files) const override {
    return {.count = files.validation, .is_guess = true, .unit = "token", .key = "data.valid"};
  }

  LabelSmoothing label_smoothing(const Experiment& experiment,
                                 const FileSizes& files) const override {
    return {.key = "loss.label_smoothing",
            .share = language_model_sections(experiment).loss.label_smoothing,
            .classes = files.classes,
            .one = "entry of the vocabulary",
            .many = "entries of the vocabulary"};
  }

  std::optional<TiedEmbedding> tied_embedding(const Experiment& experiment) const override {
    if (!models::ties_output(language_model_sections(experiment).model)) return std::nullopt;
    return TiedEmbedding{.setting = "model.tie_embeddings = true",
                         .others = "model.tie_embeddings = false"};
  }
};

}  // namespace

const TaskRules& language_model_rules() {
  static const LanguageModelRules rules;
  return rules;
}

const LanguageModelOptions& language_model_sections(const Experiment& experiment) {
  return experiment.task.as<LanguageModelOptions>();
}

std::vector<int64_t> end_tokens_of(const LanguageModelOptions& options,
                                   const text::Tokenizer& tokenizer) {
  std::vector<int64_t> ids;
  if (options.decode.end_tokens.empty()) return ids;
  std::unordered_map<std::string, int64_t> known;
  for (int64_t id = 0; id < tokenizer.size(); ++id) known.emplace(tokenizer.piece(id), id);
  for (const std::string& token : options.decode.end_tokens) {
    const auto found = known.find(token);
    if (found == known.end()) {
      throw Error(ExitCode::kUsage,
                  "decode.end_tokens: `" + printable(token) + "` is no token of the tokenizer",
                  "name a token of its vocabulary; decode.stop takes any text");
    }
    ids.push_back(found->second);
  }
  return ids;
}

data::WantedLanes training_lanes(const LanguageModelOptions& options) {
  return {.lanes = options.data.lanes,
          .lanes_key = "data.lanes",
          .length = options.data.bptt,
          .length_key = "data.bptt"};
}

data::WantedLanes eval_lanes(const LanguageModelOptions& options) {
  return {.lanes = options.eval.lanes, .lanes_key = "eval.lanes"};
}

int64_t micro_batch_tokens(const Experiment& experiment) {
  const auto& own = language_model_sections(experiment);
  if (!models::carries_state(own.model)) return own.data.max_tokens;
  // Rules are checked together: values out of range come here too.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t lanes =
      std::max<int64_t>(divided_up(own.data.lanes, experiment.train.update_freq), 1);
  return own.data.bptt > kMost / lanes ? kMost : lanes * own.data.bptt;
}

// Merges come in an order of their own, and characters in that of their code points. Pieces of a
// unigram model are sorted by their probability.
std::string doubt_of_groups(const LanguageModelOptions& options) {
  const bool has_groups = models::adaptive_softmax_of(options.model).is_on();
  if (!has_groups && options.loss.sampled_tokens == 0) return "";
  const auto& tokenizer = options.tokenizer;
  const bool is_unigram = tokenizer.type == "sentencepiece" && tokenizer.algorithm == "unigram";
  if (tokenizer.type == "word" || is_unigram) return "";
  return std::string(has_groups ? "the groups of an adaptive softmax go"
                                : "the tokens of a sampled softmax are drawn") +
         " by ids, and those of tokenizer.type = \"" + tokenizer.type +
         "\" are not in the order of frequency";
}

EvalWindow eval_window(const LanguageModelOptions& options) {
  const auto given = [](int64_t value, int64_t other) { return value > 0 ? value : other; };
  const int64_t length = given(options.eval.window, options.data.max_text_tokens);
  return {.length = length, .stride = given(options.eval.stride, length)};
}

}  // namespace stretto::experiment
