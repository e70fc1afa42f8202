#include "tasks/taken_tokenizer.h"

#include <array>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace stretto::tasks {
namespace {

constexpr size_t kListedPieces = 20;

// Keys of [tokenizer] that only a training of one reads.
constexpr std::array<const char*, 7> kTrainingKeys{
    "tokenizer.type",       "tokenizer.algorithm",          "tokenizer.joint",
    "tokenizer.vocab_size", "tokenizer.character_coverage", "tokenizer.max_training_lines",
    "tokenizer.lowercase"};

}  // namespace

void tell_taken_tokenizer(const experiment::LoadedExperiment& loaded, const std::string& of) {
  std::vector<std::string> given;
  for (const char* key : kTrainingKeys) {
    if (loaded.origins.given(key)) given.emplace_back(key);
  }
  log::info("tokenizer of " + of +
            (given.empty() ? "" : "; it takes the place of " + join(given, ", ")));
}

text::TokenizerPair taken_tokenizers(const experiment::LoadedExperiment& loaded,
                                     const runs::InitialRun& run,
                                     const text::TokenizerOptions& options) {
  if (run.tokenizer.empty()) {
    throw Error(ExitCode::kUsage,
                "train.init_from: there is no tokenizer beside " + run.place().string(),
                "give the run folder or a checkpoint inside of one, or name that run's tokenizer "
                "with tokenizer.model or tokenizer.src_vocab");
  }
  auto tokenizers = text::load_tokenizers(options, run.tokenizer);
  tell_taken_tokenizer(loaded, run.folder.string() + ", from which the weights come");
  return tokenizers;
}

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

void require_pieces(const runs::InitialRun& run) {
  if (!run.tokenizer.empty()) return;
  throw Error(ExitCode::kUsage,
              "train.init_vocabulary: there is no tokenizer beside " + run.place().string() +
                  " to match pieces with",
              "let train.init_from name the run folder, or a checkpoint inside of one");
}

}  // namespace stretto::tasks
