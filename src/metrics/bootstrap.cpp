#include "metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "metrics/scorer.h"

namespace stretto::metrics {
namespace {

using Rows = std::vector<std::vector<double>>;

void check(const BootstrapOptions& options) {
  if (options.resamples < 2) {
    throw Error(ExitCode::kUsage,
                "a bootstrap needs at least 2 resamples, got " + std::to_string(options.resamples),
                "1000 is usual");
  }
  if (!(options.confidence > 0 && options.confidence < 1)) {
    throw Error(ExitCode::kUsage,
                "confidence must lie between 0 and 1, got " + shortest(options.confidence),
                "0.95 is usual");
  }
}

/// Scores of resample number `resample` for each system, all on the same draw of segments. Each
/// resample has a stream of its own: more resamples leave the first ones as they were.
std::vector<double> resample_scores(const Scorer& scorer, std::span<const Rows* const> systems,
                                    uint64_t seed, int resample) {
  const size_t num_segments = systems.front()->size();
  std::vector<std::vector<double>> totals(systems.size());
  for (size_t s = 0; s < systems.size(); ++s) totals[s].resize(systems[s]->front().size());
  RandomStream stream(mix64(seed, static_cast<uint64_t>(resample)));
  for (size_t drawn = 0; drawn < num_segments; ++drawn) {
    const size_t segment = stream.below(num_segments);
    for (size_t s = 0; s < systems.size(); ++s) {
      const auto& row = (*systems[s])[segment];
      for (size_t k = 0; k < row.size(); ++k) totals[s][k] += row[k];
    }
  }
  std::vector<double> scores;
  for (const auto& total : totals) scores.push_back(scorer.score(total));
  return scores;
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Interval interval_of(double score, std::vector<double> resampled, double confidence) {
  Interval out;
  out.score = score;
  out.mean = mean(resampled);
  std::sort(resampled.begin(), resampled.end());
  const double tail = (1 - confidence) / 2;
  // The tolerance keeps 0.025 * 1000 from becoming 24.
  const auto cut = static_cast<size_t>(tail * static_cast<double>(resampled.size()) + 1e-9);
  const size_t low = std::min(cut, (resampled.size() - 1) / 2);
  out.low = resampled[low];
  out.high = resampled[resampled.size() - 1 - low];
  return out;
}

}  // namespace

Interval bootstrap_interval(const ScoreOptions& options, std::span<const std::string> hypotheses,
                            std::span<const std::vector<std::string>> references,
                            const BootstrapOptions& bootstrap) {
  check(bootstrap);
  const auto scorer = make_scorer(options);
  const Rows rows = corpus_statistics(*scorer, hypotheses, references);
  const Rows* systems[] = {&rows};
  std::vector<double> scores;
  for (int b = 0; b < bootstrap.resamples; ++b) {
    scores.push_back(resample_scores(*scorer, systems, bootstrap.seed, b)[0]);
  }
  return interval_of(scorer->score(sum_statistics(rows)), std::move(scores), bootstrap.confidence);
}

BootstrapResult paired_bootstrap(const ScoreOptions& options, std::span<const std::string> system,
                                 std::span<const std::string> baseline,
                                 std::span<const std::vector<std::string>> references,
                                 const BootstrapOptions& bootstrap) {
  check(bootstrap);
  const auto scorer = make_scorer(options);
  const Rows system_rows = corpus_statistics(*scorer, system, references);
  const Rows baseline_rows = corpus_statistics(*scorer, baseline, references);
  const Rows* systems[] = {&system_rows, &baseline_rows};

  std::vector<double> system_scores, baseline_scores, differences;
  int wins = 0;
  for (int b = 0; b < bootstrap.resamples; ++b) {
    const auto scores = resample_scores(*scorer, systems, bootstrap.seed, b);
    system_scores.push_back(scores[0]);
    baseline_scores.push_back(scores[1]);
    differences.push_back(scores[0] - scores[1]);
    wins += scorer->higher_is_better() ? scores[0] > scores[1] : scores[0] < scores[1];
  }

  BootstrapResult out;
  const double system_score = scorer->score(sum_statistics(system_rows));
  const double baseline_score = scorer->score(sum_statistics(baseline_rows));
  const double difference = system_score - baseline_score;
  const double centre = mean(differences);
  // Shifted to mean 0, the resampled differences show what chance does to equal systems. The
  // tolerance makes identical systems, whose differences are all 0, come out with p = 1.
  const auto extreme = std::count_if(differences.begin(), differences.end(), [&](double resampled) {
    return std::abs(resampled - centre) >= std::abs(difference) - 1e-12;
  });
  const double n = bootstrap.resamples;
  out.p_value = (1 + static_cast<double>(extreme)) / (1 + n);
  out.win_rate = wins / n;
  out.system = interval_of(system_score, std::move(system_scores), bootstrap.confidence);
  out.baseline = interval_of(baseline_score, std::move(baseline_scores), bootstrap.confidence);
  out.difference = interval_of(difference, std::move(differences), bootstrap.confidence);
  out.significant = out.difference.low > 0 || out.difference.high < 0;
  return out;
}

}  // namespace stretto::metrics
