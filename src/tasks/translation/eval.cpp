#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "distributed/agreement.h"
#include "experiment/num_threads.h"
#include "store/manifest.h"
#include "tasks/described_by.h"
#include "tasks/translation/commands.h"
#include "tasks/translation/corpus_fact.h"
#include "tasks/translation/load_run.h"
#include "tasks/translation/pair_lines.h"
#include "tasks/translation/second_source.h"
#include "tasks/translation/translation.h"

namespace stretto::tasks {
namespace {

/// What is evaluated: data options whose test set is the text in question.
struct Chosen {
  data::DataOptions data;
  std::string name;
};

Chosen choose_text(const EvalRequest& request) {
  Chosen chosen{request.experiment.options.data, "test"};
  auto& data = chosen.data;
  const auto& files = request.translation;
  const std::string &src = files.src, &tgt = files.tgt, &src2 = files.src2;
  if (src.empty() != tgt.empty()) {
    throw Error(ExitCode::kUsage, "--src and --tgt go together",
                "give both, or none for the config's");
  }
  require_second_source(request.experiment.options, src2);
  if (!src2.empty() && src.empty()) {
    throw Error(ExitCode::kUsage, "--src2 goes with --src and --tgt",
                "give all three, or none for the config's");
  }
  if (!src.empty()) {
    if (src2.empty() && models::has_two_encoders(request.experiment.options.model)) {
      throw Error(ExitCode::kUsage, "the run reads two sources, and --src is the first",
                  "give the second one, line for line, with --src2 FILE");
    }
    data.test_src = {src};
    data.test_tgt = {tgt};
    data.test_src2.clear();
    if (!src2.empty()) data.test_src2 = {src2};
    data.test_tsv.clear();
    chosen.name = src;
  } else if (data.test_src.empty() && data.test_tsv.empty()) {
    data.test_src = data.valid_src;
    data.test_src2 = data.valid_src2;
    data.test_tgt = data.valid_tgt;
    data.test_tsv = data.valid_tsv;
    chosen.name = "valid";
  }
  if (data.test_src.empty() && data.test_tsv.empty()) {
    throw Error(ExitCode::kUsage, "the run's configuration names no test or validation text",
                "give --src FILE --tgt FILE (of two sources, --src2 FILE too)");
  }
  return chosen;
}

void print_score(const CorpusScore& score, const std::string& checkpoint, const std::string& set) {
  nlohmann::ordered_json json{
      {"set", set},       {"checkpoint", checkpoint},   {"loss", score.loss},
      {"nll", score.nll}, {"ppl", std::exp(score.nll)}, {"target_tokens", score.target_tokens}};
  if (score.bleu >= 0) {
    json["bleu"] = score.bleu;
    json["signature"] = score.bleu_signature;
  }
  std::cout << json.dump() << std::endl;
}

/// What a user asked to have in files; of several processes the root writes.
void write_files(const EvalRequest& request, const data::DataOptions& options,
                 const data::Corpus& corpus, const text::TokenizerPair& tokenizers,
                 const CorpusScore& score) {
  const auto write = [&](const std::string& path, const auto& line_of, const std::string& missing) {
    if (path.empty()) return;
    write_file_atomic(path, pair_lines(corpus, options, tokenizers, line_of, missing));
  };
  const auto translation = [&](int64_t sample) {
    return score.hypotheses[static_cast<size_t>(sample)];
  };
  const auto log_prob = [&](int64_t sample) {
    const auto tokens = static_cast<int64_t>(corpus.tgt(sample).size());
    const double sum = -score.pair_nll[static_cast<size_t>(sample)];
    return fixed(sum, 6) + "\t" + fixed(sum / static_cast<double>(tokens), 6) + "\t" +
           std::to_string(tokens);
  };
  write(request.translation.hypotheses, translation, "");
  write(request.translation.per_line, log_prob, "nan\tnan\t0");
}

}  // namespace

int evaluate_translation(const EvalRequest& request, const CommandContext& context) {
  const auto chosen = choose_text(request);
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto& experiment = request.experiment.options;
  const auto& group = context.group;
  auto run = load_run(experiment, folder, request.checkpoint, context.device);
  std::vector<std::string> names;
  std::string manifests;
  for (const auto& path : run.checkpoints) {
    names.push_back(name_of(path, folder));
    manifests += read_file(path / store::kManifestName);
  }
  const std::string checkpoint = join(names, ",");
  if (group.is_root()) log::info("checkpoint " + checkpoint + ", " + chosen.name + " text");
  const auto corpus = data::open_corpus(chosen.data, data::Split::kTest, run.tokenizers,
                                        static_cast<uint64_t>(experiment.run.seed),
                                        experiment::num_threads(experiment));
  // The manifest has the hash of every file of its checkpoint.
  const bool translate = experiment.eval.bleu || !request.translation.hypotheses.empty();
  const bool per_pair = !request.translation.per_line.empty();
  distributed::require_agreement(group,
                                 {{"checkpoint", checkpoint + " " + hex64(xxh3_64(manifests))},
                                  corpus_fact("text", corpus.get()),
                                  {"--hypotheses or eval.bleu", translate ? "yes" : "no"},
                                  {"--per-line", per_pair ? "yes" : "no"}});
  const std::string split =
      split_beforehand(experiment.tokenizer, *run.tokenizers.tgt, corpus.get());
  if (translate && group.is_root() && !split.empty()) log::info("target text " + split);
  const auto score = score_corpus(run.tokenizers, run.models, corpus, experiment.decode,
                                  {.max_tokens = experiment.eval.max_tokens,
                                   .max_samples = experiment.eval.max_samples,
                                   .translate = translate,
                                   .per_pair = per_pair,
                                   .loss = experiment.loss,
                                   .group = group});
  if (!group.is_root()) return 0;  // all have the same result, one says it
  write_files(request, chosen.data, *corpus, run.tokenizers, score);
  if (request.json) {
    print_score(score, checkpoint, chosen.name);
  } else {
    const std::string smoothing = experiment.loss.smoothing_words();
    std::cout << "loss " << fixed(score.loss, 4)
              << (smoothing.empty() ? "" : " (with " + smoothing + ")") << "  nll "
              << fixed(score.nll, 4) << "  ppl " << fixed(std::exp(score.nll), 2)
              << " (exp of nll)  target tokens " << with_thousands(score.target_tokens) << "\n";
    if (score.bleu >= 0) {
      std::cout << "BLEU " << fixed(score.bleu, 2) << "  (" << score.bleu_signature << ")\n";
    }
    std::cout.flush();
  }
  return 0;
}

}  // namespace stretto::tasks
