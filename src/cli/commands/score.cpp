#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/answer_scores.h"
#include "cli/command.h"
#include "cli/input.h"
#include "metrics/bootstrap.h"
#include "metrics/scorers.h"
#include "metrics/speech_text.h"
#include "metrics/squad.h"
#include "text/subwords.h"

namespace stretto::cli {
namespace {

struct ScoreArguments {
  metrics::ScoreOptions score;
  std::vector<std::string> references;
  std::string hypotheses, against;
  std::string subwords;  ///< empty: not given
  int resamples = 0;     ///< 0 = no bootstrap
  uint64_t seed = metrics::BootstrapOptions{}.seed;
  std::string answer_split = "space";
  std::string no_answer_probabilities;
  double no_answer_threshold = 1;
  bool json = false;
};

using Json = nlohmann::ordered_json;

/// What resampling says: of the scored text and, with --against, of the other one and of their
/// difference.
struct Resampled {
  metrics::Interval system;
  std::optional<metrics::BootstrapResult> pair;
};

// Scores of pieces are higher than those of words, and look the same.
// @param subject  what looks split, with its verb: "FILE looks"
void warn_of_pieces(const std::string& subject, std::span<const std::string> lines) {
  constexpr size_t kEnough = 1000;
  std::vector<std::string> tokens;
  for (const auto& line : lines.first(std::min(lines.size(), kEnough))) {
    for (auto& token : split(line, ' ')) tokens.push_back(std::move(token));
  }
  const auto found = text::find_subwords(tokens);
  if (found == text::Subwords::kNone) return;
  const std::string kind = text::name_of(found);
  log::warn(subject + " split into sub-words (" + kind +
            "), and a score of pieces compares with nobody's\n  --subwords " + kind +
            " joins them first; --subwords none says that this is the text");
}

/// The lines of a file as they are scored.
/// @param subject  as of warn_of_pieces()
std::vector<std::string> text_of_file(const ScoreArguments& options, const std::string& path,
                                      const std::string& subject) {
  auto lines = read_lines(path);
  if (options.subwords.empty()) {
    warn_of_pieces(subject, lines);
  } else {
    const auto subwords = text::subwords_named(options.subwords);
    for (auto& line : lines) line = text::join_subwords(line, subwords);
  }
  return lines;
}

Resampled resample(const ScoreArguments& options, std::span<const std::string> hypotheses,
                   std::span<const std::vector<std::string>> references) {
  const metrics::BootstrapOptions bootstrap{.resamples = options.resamples, .seed = options.seed};
  if (options.against.empty()) {
    return {metrics::bootstrap_interval(options.score, hypotheses, references, bootstrap), {}};
  }
  const auto pair = metrics::paired_bootstrap(
      options.score, hypotheses, text_of_file(options, options.against, options.against + " looks"),
      references, bootstrap);
  return {pair.system, pair};
}

Json json_of(const metrics::Interval& interval) {
  return {{"score", interval.score},
          {"mean", interval.mean},
          {"low", interval.low},
          {"high", interval.high}};
}

Json json_of(const ScoreArguments& options, const Resampled& resampled) {
  Json json{{"resamples", options.resamples},
            {"seed", options.seed},
            {"system", json_of(resampled.system)}};
  if (!resampled.pair) return json;
  json["against"] = json_of(resampled.pair->baseline);
  json["difference"] = json_of(resampled.pair->difference);
  json["p_value"] = resampled.pair->p_value;
  json["win_rate"] = resampled.pair->win_rate;
  json["significant"] = resampled.pair->significant;
  return json;
}

/// Below the score: its interval, then the other text's score, the difference and its p-value.
std::string text_of(const ScoreArguments& options, const Resampled& resampled) {
  const auto number = [&](double value) { return fixed(value, options.score.decimals); };
  const auto interval = [&](const metrics::Interval& it) {
    return "95 % interval " + number(it.low) + " to " + number(it.high);
  };
  std::string text = interval(resampled.system) + " (" + counted(options.resamples, "resample") +
                     ", seed " + std::to_string(options.seed) + ")\n";
  if (!resampled.pair) return text;
  const auto& difference = resampled.pair->difference;
  text += options.against + ": " + number(resampled.pair->baseline.score) + ", " +
          interval(resampled.pair->baseline) + "\n";
  text += "difference " + number(difference.score) + ", " + interval(difference) +
          ", p = " + fixed(resampled.pair->p_value, 4) + " (paired, two-sided)\n";
  return text;
}

bool is_of_answers(const std::string& metric) {
  const auto names = metrics::squad_metric_names();
  return std::find(names.begin(), names.end(), metric) != names.end();
}

/// Refuses options that the metric does not read.
void check_options(const CLI::App& app, const metrics::ScoreOptions& score) {
  const std::string& metric = score.metric;
  const auto refuse = [&](std::initializer_list<const char*> names, const std::string& readers) {
    for (const char* name : names) {
      if (app.count(name) == 0) continue;
      throw Error(ExitCode::kUsage, "stretto score: " + metric + " does not read " + name,
                  std::string(name) + " is for " + readers);
    }
  };
  if (is_of_answers(metric)) {
    refuse({"--tokenize", "--subwords", "--lowercase", "--ter-case-sensitive", "--bootstrap"},
           join(metrics::metric_names(), ", "));
  } else {
    refuse({"--answer-split"}, join(metrics::squad_metric_names(), ", "));
  }
  if (is_of_answers(metric) || !metrics::is_error_rate(metric)) {
    refuse({"--normalize"}, "error rates of transcripts: wer, cer");
  }
  if (app.count("--bootstrap") > 0 && metrics::is_contiguous(score.normalize)) {
    throw Error(ExitCode::kUsage,
                "stretto score: --bootstrap draws lines, and --normalize " + score.normalize +
                    " compares all lines as one",
                "leave one of them out");
  }
  if (metric != metrics::name_of(metrics::SquadVersion::kV2)) {
    refuse({"--na-prob", "--na-prob-thresh"}, metrics::name_of(metrics::SquadVersion::kV2));
  }
}

int score_text(const ScoreArguments& options) {
  std::vector<std::vector<std::string>> references;
  for (const auto& path : options.references) {
    references.push_back(text_of_file(options, path, path + " looks"));
  }
  const auto hypotheses = text_of_file(options, options.hypotheses, "the hypotheses look");
  const auto score = metrics::compute(options.score, hypotheses, references);
  std::optional<Resampled> resampled;
  if (options.resamples > 0) resampled = resample(options, hypotheses, references);
  if (options.json) {
    auto json = Json::parse(metrics::to_json(score, options.score));
    if (resampled) json["bootstrap"] = json_of(options, *resampled);
    std::cout << json.dump() << "\n";
  } else {
    std::cout << score.text << "\n" << (resampled ? text_of(options, *resampled) : "");
  }
  return 0;
}

int run_score(const CLI::App& app, const ScoreArguments& options) {
  check_options(app, options.score);
  if (!is_of_answers(options.score.metric)) return score_text(options);
  score_answers({.metric = options.score.metric,
                 .split = options.answer_split,
                 .questions = options.references,
                 .predictions = options.hypotheses,
                 .no_answer_probabilities = options.no_answer_probabilities,
                 .no_answer_threshold = options.no_answer_threshold,
                 .decimals = options.score.decimals,
                 .json = options.json});
  return 0;
}

std::vector<std::string> all_metric_names() {
  auto names = metrics::metric_names();
  for (auto& name : metrics::squad_metric_names()) names.push_back(std::move(name));
  return names;
}

}  // namespace

std::function<int()> declare_score(CLI::App& app) {
  auto options = std::make_shared<ScoreArguments>();
  app.add_option(
         "--metric", options->score.metric,
         "bleu, chrf, chrf++ or ter of text, wer or cer of transcripts, squad1 or squad2 of "
         "answers; default bleu")
      ->check(one_of(all_metric_names()))
      ->type_name("NAME");
  app.add_option("--reference", options->references,
                 "one or more files with references; of answers, files of SQuAD with the questions")
      ->required()
      ->type_name("FILE…");
  app.add_option("--hypotheses", options->hypotheses,
                 "file to score; default stdin; of answers, a JSON object from ids to texts")
      ->type_name("FILE");
  app.add_option("--tokenize", options->score.tokenize,
                 "of BLEU: 13a, intl, none or char; default 13a")
      ->check(one_of(metrics::tokenizer_names()))
      ->type_name("NAME");
  app.add_option("--subwords", options->subwords,
                 "join sub-words first, on both sides: bpe (hou@@ se), sentencepiece (▁hou se), "
                 "wordpiece (hou ##se); none: they are the text")
      ->check(one_of(text::subwords_names()))
      ->type_name("KIND");
  app.add_flag("--lowercase", options->score.lowercase,
               "BLEU, chrF, WER and CER: lower-case both sides");
  app.add_option("--normalize", options->score.normalize,
                 "of WER and CER: none, or jiwer's standardize (lower case, English contractions "
                 "in full, no <marks> and [marks]), contiguous (all lines are one, and both sides "
                 "may have other numbers of them), or standardize_contiguous; default none")
      ->check(one_of(metrics::normalization_names()))
      ->type_name("NAME");
  app.add_flag("--ter-case-sensitive", options->score.ter_case_sensitive, "TER: heed case");
  app.add_option("--width", options->score.decimals, "digits after the point; default 2")
      ->check(whole_number(0, 12))
      ->type_name("N");
  auto* bootstrap =
      app.add_option("--bootstrap", options->resamples,
                     "draw the segments anew so many times: the score's 95 % interval")
          ->check(whole_number(2, 1000000))
          ->type_name("N");
  app.add_option("--against", options->against,
                 "another system's hypotheses: their score, the difference and its p-value")
      ->needs(bootstrap)
      ->type_name("FILE");
  app.add_option("--seed", options->seed, "of --bootstrap; default 12345")
      ->check(whole_number(0, INT64_MAX))
      ->needs(bootstrap)
      ->type_name("N");
  auto* na_prob =
      app.add_option("--na-prob", options->no_answer_probabilities,
                     "squad2: a JSON object from ids to the probability of no answer; finds the "
                     "best thresholds")
          ->type_name("FILE");
  app.add_option("--na-prob-thresh", options->no_answer_threshold,
                 "squad2: with a probability above this, a prediction is empty; default 1")
      ->needs(na_prob)
      ->type_name("X");
  app.add_option("--answer-split", options->answer_split,
                 "words of answers: space, as the scripts; mlqa-zh, Han characters apart, as MLQA; "
                 "cjk, kana too; default space")
      ->check(one_of(metrics::answer_split_names()))
      ->type_name("NAME");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options, &app] { return run_score(app, *options); };
}

}  // namespace stretto::cli
