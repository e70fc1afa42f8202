#include "metrics/scorers.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "metrics/scorer.h"

namespace stretto::metrics {
namespace {

void check_counts(std::span<const std::string> hypotheses,
                  std::span<const std::vector<std::string>> references) {
  if (references.empty()) {
    throw Error(ExitCode::kBadData, "there is no reference to score against",
                "give at least one reference file");
  }
  if (hypotheses.empty()) {
    throw Error(ExitCode::kBadData, "there are no hypotheses to score",
                "give a file with one translation a line");
  }
  for (size_t r = 0; r < references.size(); ++r) {
    if (references[r].size() == hypotheses.size()) continue;
    throw Error(ExitCode::kBadData,
                "reference set " + std::to_string(r + 1) + " has " +
                    counted(static_cast<int64_t>(references[r].size()), "segment") +
                    ", the system " +
                    counted(static_cast<int64_t>(hypotheses.size()), "hypothesis"),
                "both sides need one segment a line in the same order; look for lines that were "
                "dropped or split");
  }
}

}  // namespace

std::vector<std::vector<double>> corpus_statistics(
    Scorer& scorer, std::span<const std::string> hypotheses,
    std::span<const std::vector<std::string>> references) {
  std::vector<std::vector<double>> rows;
  if (scorer.is_contiguous()) {
    std::vector<std::string> joined;
    for (const auto& lines : references) joined.push_back(join(lines, "\n"));
    rows.push_back(scorer.segment_statistics(join(hypotheses, "\n"), joined));
    return rows;
  }
  check_counts(hypotheses, references);
  rows.reserve(hypotheses.size());
  std::vector<std::string> segment_references(references.size());
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    for (size_t r = 0; r < references.size(); ++r) segment_references[r] = references[r][i];
    rows.push_back(scorer.segment_statistics(hypotheses[i], segment_references));
  }
  return rows;
}

std::vector<double> sum_statistics(std::span<const std::vector<double>> rows) {
  std::vector<double> totals(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows) {
    for (size_t k = 0; k < totals.size(); ++k) totals[k] += row[k];
  }
  return totals;
}

Score compute(const ScoreOptions& options, std::span<const std::string> hypotheses,
              std::span<const std::vector<std::string>> references) {
  const std::unique_ptr<Scorer> scorer = make_scorer(options);
  const auto rows = corpus_statistics(*scorer, hypotheses, references);
  Score out = scorer->report(sum_statistics(rows));
  out.signature = "nrefs:" + std::to_string(references.size()) + "|" + scorer->signature_fields() +
                  "|version:" + scorer->version();
  out.text = out.metric + "|" + out.signature + " = " + fixed(out.score, options.decimals) +
             (out.verbose.empty() ? "" : " " + out.verbose);
  return out;
}

std::string to_json(const Score& score, const ScoreOptions& options) {
  nlohmann::ordered_json json;
  json["metric"] = options.metric;
  json["score"] = score.score;
  json["signature"] = score.signature;
  json[options.metric] = score.score;
  for (const auto& [name, value] : score.details) json[name] = value;
  return json.dump();
}

}  // namespace stretto::metrics
