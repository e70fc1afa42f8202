#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/input.h"
#include "metrics/scorers.h"

namespace stretto::cli {
namespace {

struct Options {
  metrics::ScoreOptions score;
  std::vector<std::string> references;
  std::string hypotheses;
  bool json = false;
};

int run(const Options& options) {
  std::vector<std::vector<std::string>> references;
  for (const auto& path : options.references) references.push_back(read_lines(path));
  const auto hypotheses = read_lines(options.hypotheses);
  const auto score = metrics::compute(options.score, hypotheses, references);
  std::cout << (options.json ? metrics::to_json(score, options.score) : score.text) << "\n";
  return 0;
}

}  // namespace

std::function<int()> declare_score(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--metric", options->score.metric, "bleu, chrf, chrf++ or ter; default bleu")
      ->check(one_of(metrics::metric_names()))
      ->type_name("NAME");
  app.add_option("--reference", options->references, "one or more files with references")
      ->required()
      ->type_name("FILE…");
  app.add_option("--hypotheses", options->hypotheses, "file to score; default stdin")
      ->type_name("FILE");
  app.add_option("--tokenize", options->score.tokenize,
                 "of BLEU: 13a, intl, none or char; default 13a")
      ->check(one_of(metrics::tokenizer_names()))
      ->type_name("NAME");
  app.add_flag("--lowercase", options->score.lowercase, "BLEU and chrF: lower-case both sides");
  app.add_flag("--ter-case-sensitive", options->score.ter_case_sensitive, "TER: heed case");
  app.add_option("--width", options->score.decimals, "digits after the point; default 2")
      ->check(whole_number(0, 12))
      ->type_name("N");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run(*options); };
}

}  // namespace stretto::cli
