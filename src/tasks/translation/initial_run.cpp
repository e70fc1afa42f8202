#include "tasks/translation/initial_run.h"

#include <array>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "experiment/training_text.h"
#include "runs/provenance.h"

namespace stretto::tasks {
namespace {

constexpr size_t kListedPieces = 20;

// Keys of [tokenizer] that only a training of one reads.
constexpr std::array<const char*, 7> kTrainingKeys{
    "tokenizer.type",       "tokenizer.algorithm",          "tokenizer.joint",
    "tokenizer.vocab_size", "tokenizer.character_coverage", "tokenizer.max_training_lines",
    "tokenizer.lowercase"};

text::TokenizerPair tokenizers_of_other_run(const experiment::LoadedExperiment& loaded,
                                            const runs::InitialRun& run) {
  if (run.tokenizer.empty()) {
    throw Error(ExitCode::kUsage,
                "train.init_from: there is no tokenizer beside " + run.place().string(),
                "give the run folder or a checkpoint inside of one, or name that run's tokenizer "
                "with tokenizer.model or tokenizer.src_vocab");
  }
  auto tokenizers = text::load_tokenizers(translation_of(loaded.options).tokenizer, run.tokenizer);
  std::vector<std::string> given;
  for (const char* key : kTrainingKeys) {
    if (loaded.origins.given(key)) given.emplace_back(key);
  }
  log::info("tokenizer of " + run.folder.string() + ", from which the weights come" +
            (given.empty() ? "" : "; it takes the place of " + join(given, ", ")));
  return tokenizers;
}

// What one side takes over; says what it does not.
std::vector<int64_t> matched_rows(const text::Tokenizer& now, const text::Tokenizer& before,
                                  const std::string& side) {
  auto rows = text::match_pieces(now, before);
  std::vector<std::string> missing;
  size_t anew = 0;
  for (size_t id = 0; id < rows.size(); ++id) {
    if (rows[id] >= 0) continue;
    if (++anew <= kListedPieces) {
      missing.push_back("`" + printable(now.piece(static_cast<int64_t>(id)), 40) + "`");
    }
  }
  if (anew > missing.size()) {
    missing.push_back("and " + with_thousands(static_cast<int64_t>(anew - missing.size())) +
                      " more");
  }
  log::info("train.init_vocabulary: " + with_thousands(static_cast<int64_t>(rows.size() - anew)) +
            " of " + with_thousands(now.size()) + " " + side + "pieces keep their rows" +
            (anew == 0 ? ""
                       : ", " + with_thousands(static_cast<int64_t>(anew)) +
                             " begin anew: " + join(missing, ", ")));
  return rows;
}

}  // namespace

void require_pieces(const runs::InitialRun& run) {
  if (!run.tokenizer.empty()) return;
  throw Error(ExitCode::kUsage,
              "train.init_vocabulary: there is no tokenizer beside " + run.place().string() +
                  " to match pieces with",
              "let train.init_from name the run folder, or a checkpoint inside of one");
}

text::TokenizerPair first_tokenizers(const experiment::LoadedExperiment& loaded) {
  const auto& options = loaded.options;
  const auto& from = options.train.init_from;
  if (from.empty()) return experiment::make_experiment_tokenizers(options);
  // Weights are verified where they are loaded; to take a tokenizer along they must be, too.
  const bool match = options.train.init_vocabulary == "match";
  return first_tokenizers(
      loaded, runs::open_initial_run(from, match ? runs::Reading::kHeads : runs::Reading::kAll));
}

text::TokenizerPair first_tokenizers(const experiment::LoadedExperiment& loaded,
                                     const runs::InitialRun& run) {
  const auto& options = loaded.options;
  if (options.train.init_vocabulary == "match") {
    require_pieces(run);
    return experiment::make_experiment_tokenizers(options);
  }
  if (!text::names_tokenizer(translation_of(options).tokenizer))
    return tokenizers_of_other_run(loaded, run);
  auto tokenizers = experiment::make_experiment_tokenizers(options);
  runs::require_tokenizer_of(run, runs::tokenizer_hashes(tokenizers.assets));
  return tokenizers;
}

std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run,
                                               const text::TokenizerPair& tokenizers,
                                               const models::Seq2SeqModel& model) {
  require_pieces(run);
  const auto before = text::load_tokenizers({}, run.tokenizer);
  const auto target = matched_rows(*tokenizers.tgt, *before.tgt, tokenizers.joint ? "" : "target ");
  const auto source = tokenizers.joint && before.joint
                          ? target
                          : matched_rows(*tokenizers.src, *before.src, "source ");
  std::vector<runs::MatchedTable> tables;
  const auto add = [&](const std::string& name, bool of_source) {
    const std::string side = of_source ? "source" : "target";
    tables.push_back({.parameter = name,
                      .rows = of_source ? source : target,
                      .vocabulary = before.joint ? "" : side});
  };
  for (const auto& table : model.vocabulary_tables()) add(table.parameter, table.of_source);
  // Which the other run may not tie: its encoder's table then has the source's pieces.
  for (const auto& tied : model.tied_names()) {
    add(tied.name, tied.name.starts_with("encoder.") || tied.name.starts_with("encoders."));
  }
  return tables;
}

}  // namespace stretto::tasks
