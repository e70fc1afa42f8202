#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/named_output.h"
#include "base/text.h"
#include "data/pairs/parallel_input.h"
#include "distributed/agreement.h"
#include "experiment/num_threads.h"
#include "families/translation/engine/commands.h"
#include "families/translation/engine/corpus_fact.h"
#include "families/translation/engine/head_scores.h"
#include "families/translation/engine/load_run.h"
#include "families/translation/engine/pair_lines.h"
#include "families/translation/engine/second_source.h"
#include "families/translation/engine/shortlist_file.h"
#include "families/translation/engine/translation.h"
#include "families/translation/heads.h"
#include "families/translation/requests.h"
#include "families/translation/translation_display.h"
#include "families/translation/translation_options.h"
#include "tasks/finite_answers.h"
#include "tasks/left_out.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

/// What a decoder is judged on: data options whose test set is the text in question.
struct Chosen {
  std::string head;  ///< empty where there is one decoder alone
  std::string text;  ///< "text", of several heads which
  data::DataOptions data;
  std::string name;
};

// The test text of a head, else its validation text.
Chosen text_of(const experiment::Head& head) {
  Chosen chosen{head.name, head.called("text"), head.data, "test"};
  auto& data = chosen.data;
  if (data::has_text(data, data::Split::kTest)) return chosen;
  data.test_src = data.valid_src;
  data.test_src2 = data.valid_src2;
  data.test_tgt = data.valid_tgt;
  data.test_tsv = data.valid_tsv;
  chosen.name = "valid";
  return chosen;
}

// Files that stand for one text alone need one head.
void require_head_for_files(const EvalRequest& request) {
  const auto& asked = request.own.as<TranslationEvalFiles>();
  const auto& heads = translation_of(request.experiment.options).model.heads;
  if (heads.empty() || !asked.head.empty()) return;
  const char* option = !asked.src.empty()          ? "--src"
                       : !asked.hypotheses.empty() ? "--hypotheses"
                       : !asked.per_line.empty()   ? "--per-line"
                                                   : nullptr;
  if (option == nullptr) return;
  const auto names = experiment::head_names(request.experiment.options);
  throw Error(ExitCode::kUsage,
              std::string(option) + " is for one decoder, and the run has several",
              "add --head NAME; its heads are " + join(names, ", "));
}

// Files of both sides, and of every source.
void require_all_files(const EvalRequest& request) {
  const auto& asked = request.own.as<TranslationEvalFiles>();
  const auto& experiment = request.experiment.options;
  if (asked.src.empty() != asked.tgt.empty()) {
    throw Error(ExitCode::kUsage, "--src and --tgt go together",
                "give both, or none for the config's");
  }
  require_second_source(experiment, asked.src2);
  if (!asked.src2.empty() && asked.src.empty()) {
    throw Error(ExitCode::kUsage, "--src2 goes with --src and --tgt",
                "give all three, or none for the config's");
  }
  if (!asked.src.empty() && asked.src2.empty() &&
      models::has_two_encoders(translation_of(experiment).model)) {
    throw Error(ExitCode::kUsage, "the run reads two sources, and --src is the first",
                "give the second one, line for line, with --src2 FILE");
  }
}

std::vector<Chosen> choose_texts(const EvalRequest& request) {
  const auto& asked = request.own.as<TranslationEvalFiles>();
  const auto& experiment = request.experiment.options;
  require_all_files(request);
  require_head_for_files(request);
  auto heads = experiment::heads_of(experiment);
  if (!asked.head.empty()) {
    heads = {heads.at(experiment::head_named(experiment, asked.head, "--head"))};
  }
  std::vector<Chosen> chosen;
  for (const auto& head : heads) {
    Chosen one = text_of(head);
    if (!asked.src.empty()) {
      one.data.test_src = {asked.src};
      one.data.test_tgt = {asked.tgt};
      one.data.test_src2.clear();
      if (!asked.src2.empty()) one.data.test_src2 = {asked.src2};
      one.data.test_tsv.clear();
      one.name = asked.src;
    }
    if (data::has_text(one.data, data::Split::kTest)) chosen.push_back(std::move(one));
  }
  if (chosen.empty()) {
    throw Error(ExitCode::kUsage, "the run's configuration names no test or validation text",
                "give --src FILE --tgt FILE (of two sources, --src2 FILE too)");
  }
  return chosen;
}

// "test", or where heads have texts of different kinds "test,valid".
std::string set_of(const std::vector<Chosen>& texts) {
  std::vector<std::string> names;
  for (const Chosen& text : texts) {
    if (std::ranges::find(names, text.name) == names.end()) names.push_back(text.name);
  }
  return join(names, ",");
}

// A mean would be of numbers that cannot be compared.
void tell_of_sets(const std::vector<HeadScore>& heads) {
  std::vector<std::string> without;
  for (const auto& one : heads) {
    if (one.set == "valid") without.push_back(one.head);
  }
  log::warn("no mean BLEU over heads: there is no test text of " + join(without, ", ") +
            ", which validation text judges; set test_src and test_tgt, or test_tsv, in each of "
            "[[data.heads]]");
}

void print_json(const std::vector<HeadScore>& heads, const std::string& checkpoint,
                const std::string& set) {
  const CorpusScore score = overall(heads);
  nlohmann::ordered_json json{{"set", set},
                              {"checkpoint", checkpoint},
                              {score_key::kLoss, score.loss},
                              {score_key::kNll, score.nll},
                              {score_key::kPpl, std::exp(score.nll)},
                              {"target_tokens", score.target_tokens}};
  const CorpusScore& first = heads.front().score;
  if (score.bleu >= 0) json[score_key::kBleu] = score.bleu;
  if (first.bleu >= 0) json["signature"] = first.bleu_signature;
  for (const auto& one : scores_of(heads)) {
    if (!json.contains(one.name)) json[one.name] = one.value;
  }
  for (const auto& one : heads) {
    if (!one.head.empty()) json[one.head + ".set"] = one.set;
  }
  std::cout << json.dump() << std::endl;
}

void print_text(const std::vector<HeadScore>& heads, const losses::CrossEntropyOptions& loss) {
  const CorpusScore score = overall(heads);
  const std::string smoothing = loss.smoothing_words();
  std::cout << "loss " << fixed(score.loss, 4)
            << (smoothing.empty() ? "" : " (with " + smoothing + ")") << "  nll "
            << fixed(score.nll, 4) << "  ppl " << fixed(std::exp(score.nll), 2)
            << " (exp of nll)  target tokens " << with_thousands(score.target_tokens) << "\n";
  if (score.bleu >= 0) {
    std::cout << "BLEU " << fixed(score.bleu, 2) << "  ("
              << (heads.size() > 1 ? "mean over heads, " : "") << score.bleu_signature << ")\n";
  } else if (heads.front().score.bleu >= 0) {
    std::cout << "BLEU of each head  (" << heads.front().score.bleu_signature << ")\n";
  }
  for (const auto& [head, own, set] : heads) {
    if (head.empty()) continue;
    std::cout << head << ".nll " << fixed(own.nll, 4) << "  " << head << ".ppl "
              << fixed(std::exp(own.nll), 2);
    if (own.bleu >= 0) std::cout << "  " << head << ".bleu " << fixed(own.bleu, 2);
    std::cout << "  " << head << ".set " << set << "\n";
  }
  std::cout.flush();
}

/// What a user asked to have in files; of several processes the root writes.
void write_files(const EvalRequest& request, const data::DataOptions& options,
                 const data::Corpus& corpus, const text::TokenizerPair& tokenizers,
                 const CorpusScore& score) {
  const auto write = [&](const std::string& path, const auto& line_of, const std::string& missing) {
    if (path.empty()) return;
    write_named_output(path, pair_lines(corpus, options, tokenizers, line_of, missing));
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
  const auto& asked = request.own.as<TranslationEvalFiles>();
  write(asked.hypotheses, translation, "");
  write(asked.per_line, log_prob, "nan\tnan\t0");
}

}  // namespace

int evaluate_translation(const EvalRequest& request, const CommandContext& context) {
  const auto texts = choose_texts(request);
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto& experiment = request.experiment.options;
  const auto& group = context.group;
  const auto run = load_translation_run(experiment, folder, request.checkpoint, context.device);
  const std::string checkpoint = checkpoint_names(run.checkpoints, folder);
  if (group.is_root()) log::info("checkpoint " + checkpoint + ", " + set_of(texts) + " text");
  const auto& asked = request.own.as<TranslationEvalFiles>();
  const bool translate = translation_of(experiment).eval.bleu || !asked.hypotheses.empty();
  const bool per_pair = !asked.per_line.empty();
  const auto shortlist =
      translate ? open_shortlist(translation_of(experiment).decode, run.tokenizers) : nullptr;
  std::vector<HeadScore> heads;
  for (const Chosen& text : texts) {
    const auto corpus = data::open_corpus(text.data, data::Split::kTest, run.tokenizers,
                                          static_cast<uint64_t>(experiment.run.seed),
                                          experiment::num_threads(experiment));
    distributed::require_agreement(
        group, {{"checkpoint", checkpoint + " " + checkpoint_hash(run.checkpoints)},
                corpus_fact(text.text, corpus.get()),
                {"--hypotheses or eval.bleu", translate ? "yes" : "no"},
                {"--per-line", per_pair ? "yes" : "no"}});
    if (group.is_root()) warn_of_left_out(corpus->filters().left_out);
    const std::string split =
        split_beforehand(translation_of(experiment).tokenizer, *run.tokenizers.tgt, corpus.get());
    if (translate && group.is_root() && !split.empty())
      log::info("target " + text.text + " " + split);
    const bool alone = texts.size() == 1 && !asked.head.empty();
    heads.push_back({alone ? "" : text.head,
                     score_corpus(run.tokenizers, models_of_head(run, text.head), corpus,
                                  translation_of(experiment).decode,
                                  {.max_tokens = translation_of(experiment).eval.max_tokens,
                                   .max_samples = translation_of(experiment).eval.max_samples,
                                   .translate = translate,
                                   .per_pair = per_pair,
                                   .loss = translation_of(experiment).loss,
                                   .shortlist = shortlist,
                                   .group = group,
                                   .loading = {.depth = text.data.prefetch}}),
                     text.name});
    if (!std::isfinite(heads.back().score.nll)) {
      refuse_not_finite(text.name + " " + text.text, "its nll", request.run_directory);
    }
    if (group.is_root()) {
      write_files(request, text.data, *corpus, run.tokenizers, heads.back().score);
    }
  }
  if (!group.is_root()) return 0;  // all have the same result, one says it
  if (translate && !share_set(heads)) tell_of_sets(heads);
  if (request.json) {
    print_json(heads, checkpoint, set_of(texts));
  } else {
    print_text(heads, translation_of(experiment).loss);
  }
  return 0;
}

}  // namespace stretto::tasks
