#include "train/forensics/rank_reports.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "parallel/out_of_memory.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// What the others must know of a rank's findings.
struct Word {
  bool examined = false, found = false;
  std::string sum, report;  ///< report: as JSON, where something was found
  std::string weights_hash;

  std::string bytes() const {
    const Json json{{"examined", examined},
                    {"found", found},
                    {"sum", sum},
                    {"report", report},
                    {"weights_hash", weights_hash}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static Word from(const std::string& bytes) {
    const auto json = Json::parse(bytes);
    return {.examined = json.at("examined").get<bool>(),
            .found = json.at("found").get<bool>(),
            .sum = json.at("sum").get<std::string>(),
            .report = json.at("report").get<std::string>(),
            .weights_hash = json.at("weights_hash").get<std::string>()};
  }
};

// Libtorch's texts have a stack trace behind their first line.
std::string reason_of(const std::exception& error) {
  if (parallel::is_out_of_memory(error)) return "out of memory";
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

std::string text_of(const RankFindings& mine) {
  return report_to_json(*mine.found, mine.record, weights_name(mine.record.step));
}

Word word_of(const RankFindings& mine) {
  try {
    Word word{.examined = mine.found.has_value(), .sum = mine.overflowed_sum};
    word.found = word.examined && mine.found->found();
    word.weights_hash = mine.record.weights_hash;
    if (word.found) word.report = text_of(mine);
    return word;
  } catch (const std::exception& error) {  // the others wait
    log::warn("what was not finite could not be told: " + reason_of(error));
    return {};
  }
}

// A cable is loose or a memory cell broken: the update runs again with other weights than it had.
void warn_of_other_weights(const std::vector<Word>& words) {
  for (size_t rank = 1; rank < words.size(); ++rank) {
    if (words[rank].found && words[rank].weights_hash != words[0].weights_hash) {
      log::warn("rank " + std::to_string(rank) + " has other weights than rank 0, whose weights " +
                "stand beside the reports: look at its memory and at its network card first");
    }
  }
}

// Never throws: the other ranks wait for the path.
std::string write_or_warn(const fs::path& run_directory, const RankFindings& mine,
                          const std::vector<ReportText>& reports, const optim::Arena& arena) {
  try {
    const auto paths = write_reports(run_directory, mine.record.step, reports, arena, mine.carry);
    for (const auto& path : paths) {
      log::warn("report: " + path.string() + "; `stretto replay " + path.string() +
                "` runs this update again");
    }
    return paths.front().string();
  } catch (const Error& error) {
    log::warn("the report could not be written: " + error.message());
  } catch (const std::exception& error) {
    log::warn("the report could not be written: " + reason_of(error));
  }
  return "";
}

}  // namespace

std::optional<NonfiniteReport> examine_or_warn(
    const std::function<NonfiniteReport()>& examination) {
  try {
    return examination();
  } catch (const Error& error) {
    if (error.code() == ExitCode::kPeerLost) throw;
    log::warn("what was not finite could not be looked for: " + error.message());
  } catch (const std::exception& error) {
    log::warn("what was not finite could not be looked for: " + reason_of(error));
  }
  return std::nullopt;
}

std::string gather_reports(const distributed::ProcessGroup& group, const fs::path& run_directory,
                           RankFindings mine, const optim::Arena& arena) {
  std::vector<Word> words;
  for (const auto& bytes : group.all_gather_bytes(word_of(mine).bytes())) {
    words.push_back(Word::from(bytes));
  }
  const bool nobody = std::all_of(words.begin(), words.end(),
                                  [](const Word& word) { return word.examined && !word.found; });
  if (nobody && mine.loss_finite) {
    const auto named = std::find_if(words.begin(), words.end(),
                                    [](const Word& word) { return !word.sum.empty(); });
    if (named != words.end()) mine.found->first = {TensorKind::kSum, named->sum, {}};
  }
  const bool is_root_alone = nobody && group.is_root();
  if (is_root_alone || words[static_cast<size_t>(group.rank())].found) {
    log::warn(report_to_text(*mine.found, mine.record, {.run = mine.run}));
  }
  std::string path;
  if (group.is_root()) {
    std::vector<ReportText> reports;
    if (nobody) reports.push_back({0, text_of(mine)});
    for (size_t rank = 0; rank < words.size(); ++rank) {
      if (words[rank].found) reports.push_back({static_cast<int64_t>(rank), words[rank].report});
    }
    warn_of_other_weights(words);
    if (!reports.empty()) path = write_or_warn(run_directory, mine, reports, arena);
  }
  if (is_root_alone && mine.found->found()) {
    log::warn("step " + with_thousands(mine.record.step) + ": on each process alone all was " +
              "finite" +
              (mine.half_sums ? "; dist.compress = \"bf16\" keeps the range of fp32" : ""));
  }
  return group.all_gather_bytes(path).front();
}

}  // namespace stretto::train
