#include "families/text/engine/text_task.h"

#include <cmath>

#include "base/hash.h"
#include "base/text.h"
#include "data/text_columns.h"
#include "experiment/scaled_rate.h"
#include "runs/initial_weights.h"
#include "tasks/left_out.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {

TextTask::TextTask(const experiment::Experiment& experiment, Assets assets,
                   const CommandContext& context)
    : experiment_(experiment),
      assets_(std::move(assets)),
      context_(context),
      tokenizer_(load_tokenizer(experiment_, assets_)) {}

train::TaskWords TextTask::words() const {
  return {.sample = "text",
          .samples = "texts",
          .smaller_batches =
              "lower data.max_tokens (raise train.update_freq by the same factor to keep the "
              "batch), or data.max_text_tokens",
          .odd_samples = {},
          .stabilising_setting = {}};
}

std::vector<std::pair<std::string, std::string>> TextTask::show(const data::Batch& batch,
                                                                int64_t index) const {
  const auto ids = data::tokens(batch).sequence(index);
  return {{"text", tokenizer().decode({ids.begin(), ids.end()})}};
}

std::vector<distributed::Fact> TextTask::data_facts() const {
  std::vector<distributed::Fact> facts;
  for (const TextFacts& text : text_facts()) {
    facts.push_back({text.name, hex64(text.hash) + " of " + counted(text.samples, "sample")});
  }
  facts.push_back({"micro-batches an epoch", std::to_string(batches_->num_batches())});
  return facts;
}

void TextTask::require_known_data(bool warn) const {
  for (const TextFacts& text : text_facts()) {
    experiment::require_known(text.name, text.counts, experiment_, warn);
  }
}

std::vector<std::pair<std::string, std::string>> TextTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts{
      {"parameters", with_thousands(num_parameters())},
      {"vocabulary", with_thousands(tokenizer().size())}};
  for (const TextFacts& text : text_facts()) {
    facts.emplace_back(
        text.name, counted(text.samples, "sample") + ", " + counted(text.counts.tokens, "token"));
    if (text.cut_samples > 0) {
      facts.emplace_back(text.name + ", cut", counted(text.cut_samples, "sample") + ", " +
                                                  counted(text.cut_tokens, "token") +
                                                  " above data.max_text_tokens");
    }
    facts.emplace_back(text.name + ", unknown tokens", percent_text(text.counts.unknown_rate()));
    if (text.left_out.count > 0) facts.emplace_back(text.name + ", left out", text.left_out.text());
    for (const auto& [name, value] : text.more) facts.emplace_back(text.name + ", " + name, value);
  }
  facts.emplace_back("micro-batches an epoch", with_thousands(batches_->num_batches()));
  return facts;
}

std::vector<std::string> TextTask::notes() const {
  std::vector<std::string> notes;
  for (const TextFacts& text : text_facts()) add_note_of_left_out(text.name, text.left_out, notes);
  return notes;
}

int64_t TextTask::update_bound() const {
  return std::llround(experiment::ScaledRate(experiment_).batch);
}

std::vector<runs::MatchedTable> TextTask::matched_tables(const runs::InitialRun& run) const {
  require_pieces(run);
  const auto before = text::load_tokenizers({}, run.tokenizer);
  const auto rows = matched_rows(tokenizer(), *before.src, "");
  std::vector<runs::MatchedTable> tables;
  for (const auto& table : vocabulary_tables()) tables.push_back({table.parameter, rows});
  for (const auto& tied : tied_names()) tables.push_back({tied.name, rows});
  return tables;
}

models::ForwardContext training_context(const train::StepContext& context) {
  return {.training = true, .dropout_key = context.dropout_key()};
}

}  // namespace stretto::tasks
