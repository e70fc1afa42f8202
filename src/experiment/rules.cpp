#include "experiment/rules.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "base/text.h"
#include "data/byte_stream.h"
#include "experiment/head_rules.h"
#include "experiment/heads.h"
#include "experiment/scaled_rate.h"
#include "experiment/schedule_length.h"
#include "experiment/tensor_patterns.h"
#include "models/misfits.h"
#include "optim/precision_options.h"
#include "text/tokenizer.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;

std::string number(int64_t value) {
  return std::to_string(value);
}
std::string count(size_t value) {
  return std::to_string(value);
}

/// The experiment under test and where to note what is wrong with it.
class Check {
 public:
  Check(const Experiment& options, const config::Origins& origins,
        std::vector<config::Problem>& problems)
      : e(options), origins(origins), problems_(problems), before_(problems) {}

  /// @param keys  what the rule reads; the first one is blamed
  void wrong(const std::vector<std::string>& keys, const std::string& what,
             const std::string& hint) {
    for (const std::string& key : keys) {
      if (config::is_unreliable(before_, key)) return;
    }
    const std::string& blamed = keys.front();
    problems_.push_back({origins.of(blamed), what, hint, blamed, origins.order_of(blamed)});
  }

  const Experiment& e;
  const config::Origins& origins;

 private:
  std::vector<config::Problem>& problems_;
  const std::vector<config::Problem> before_;
};

// Parts that cannot be built, or do not fit together.
void check_parts(Check& c) {
  for (const auto& misfit : models::misfits(c.e.model)) {
    c.wrong(misfit.keys, misfit.what, misfit.hint);
  }
  for (const auto& problem : head_problems(c.e)) c.wrong(problem.keys, problem.what, problem.hint);
}

// After the sum a gain of 0 leaves nothing of a layer's input; before a part it shuts a relu for
// good.
void check_zero_gamma(Check& c) {
  const auto& model = c.e.model;
  if (!model.zero_gamma || !models::has_transformer(model) || models::parts_end_in_norm(model))
    return;
  c.wrong({"model.zero_gamma", "model.norm"},
          "a gain that starts at 0 has to stand at the end of each part, but model.norm is \"" +
              model.norm + "\"",
          "set model.norm = \"res_post\", or leave zero_gamma out");
}

// The run that train.init_from names brings a tokenizer along, unless the configuration names one.
bool takes_tokenizer_of_another_run(const Experiment& e) {
  return !e.train.init_from.empty() && e.train.init_vocabulary == "same" &&
         !text::names_tokenizer(e.tokenizer);
}

void check_tokenizer_files(Check& c) {
  const auto& t = c.e.tokenizer;
  if (t.type == "vocab") {
    if (t.src_vocab.empty() && !takes_tokenizer_of_another_run(c.e)) {
      c.wrong({"tokenizer.type", "tokenizer.src_vocab"}, "\"vocab\" needs tokenizer.src_vocab",
              "name a vocabulary file");
    }
    if (!t.model.empty() || !t.src_model.empty() || !t.tgt_model.empty()) {
      const char* key = !t.model.empty()       ? "tokenizer.model"
                        : !t.src_model.empty() ? "tokenizer.src_model"
                                               : "tokenizer.tgt_model";
      c.wrong({key, "tokenizer.type"}, "a SentencePiece model beside type = \"vocab\"",
              "remove it, or use type = \"sentencepiece\"");
    }
    return;
  }
  if (!t.src_vocab.empty() || !t.tgt_vocab.empty()) {
    c.wrong({t.src_vocab.empty() ? "tokenizer.tgt_vocab" : "tokenizer.src_vocab", "tokenizer.type"},
            "a vocabulary file beside type = \"sentencepiece\"",
            "use type = \"vocab\" for text that is already split at spaces");
  }
  const bool two_models = !t.src_model.empty() || !t.tgt_model.empty();
  if (!t.model.empty() && two_models) {
    c.wrong({"tokenizer.model"}, "stands beside src_model or tgt_model",
            "give one model for both sides, or one for each");
  } else if (two_models && (t.src_model.empty() || t.tgt_model.empty())) {
    c.wrong({t.src_model.empty() ? "tokenizer.tgt_model" : "tokenizer.src_model",
             t.src_model.empty() ? "tokenizer.src_model" : "tokenizer.tgt_model"},
            "the other side's model is missing", "give both src_model and tgt_model");
  }
}

void check_subword_sampling(Check& c) {
  if (c.e.tokenizer.type != "vocab" || takes_tokenizer_of_another_run(c.e)) return;
  const auto refuse = [&](double strength, const char* key) {
    if (strength <= 0) return;
    c.wrong({key, "tokenizer.type"},
            "text that was split beforehand has one segmentation: none can be drawn",
            "set it to 0, or use tokenizer.type = \"sentencepiece\" on raw text");
  };
  refuse(c.e.data.src_subword_sampling, "data.src_subword_sampling");
  refuse(c.e.data.tgt_subword_sampling, "data.tgt_subword_sampling");
}

void check_init(Check& c) {
  if (!c.e.train.init_only.empty() && c.e.train.init_from.empty()) {
    c.wrong({"train.init_only", "train.init_from"}, "there is no other run to take tensors from",
            "set train.init_from, or leave train.init_only out");
  }
  if (c.e.train.init_vocabulary == "same" || !c.e.train.init_from.empty()) return;
  c.wrong({"train.init_vocabulary", "train.init_from"},
          "there is no other run whose rows could be matched",
          "set train.init_from, or leave train.init_vocabulary out");
}

void check_ties(Check& c) {
  const auto& t = c.e.tokenizer;
  bool joint = t.joint || !t.model.empty();
  if (!t.src_model.empty() && !t.tgt_model.empty()) joint = t.src_model == t.tgt_model;
  if (t.type == "vocab") joint = t.tgt_vocab.empty() || t.tgt_vocab == t.src_vocab;
  if (c.e.model.tie_embeddings != "all" || joint || takes_tokenizer_of_another_run(c.e)) return;
  c.wrong({"model.tie_embeddings", "tokenizer.joint", "tokenizer.type"},
          "\"all\" needs one vocabulary for both sides",
          "use tie_embeddings = \"decoder\", or a joint tokenizer (tokenizer.joint = true)");
}

void check_noam(Check& c) {
  const auto& s = c.e.schedule;
  if (s.name != "noam") return;
  if (s.d_model != c.e.model.d_model) {
    c.wrong({"schedule.d_model", "model.d_model", "schedule.name"},
            number(s.d_model) + " is not model.d_model = " + number(c.e.model.d_model),
            "noam divides by the root of the model's width: set both to the same");
  }
  if (s.warmup_steps < 1 && s.warmup_ratio <= 0) {
    c.wrong({"schedule.warmup_steps", "schedule.name"}, "noam needs a warm-up", "4000 is usual");
  }
}

void check_piecewise(Check& c) {
  const auto& s = c.e.schedule;
  if (s.name != "piecewise") return;
  if (s.boundaries.empty() || s.boundaries.size() != s.multipliers.size()) {
    c.wrong({"schedule.boundaries", "schedule.multipliers", "schedule.name"},
            count(s.boundaries.size()) + " boundaries and " + count(s.multipliers.size()) +
                " multipliers",
            "piecewise needs one multiplier of optim.lr for each boundary");
  } else if (!std::is_sorted(s.boundaries.begin(), s.boundaries.end(), std::less_equal<>())) {
    c.wrong({"schedule.boundaries"}, "the boundaries do not ascend", "sort them");
  }
}

void check_optimizer(Check& c) {
  const auto& o = c.e.optim;
  if (o.lr_scaling != "none" && o.reference_batch == 0) {
    c.wrong({"optim.lr_scaling", "optim.reference_batch"},
            "\"" + o.lr_scaling + "\" needs optim.reference_batch",
            "set it to the batch in tokens (data.max_tokens * train.update_freq) that optim.lr was "
            "chosen for");
  }
  if (o.name == "lazy_adam" && o.gradient_noise > 0) {
    c.wrong({"optim.gradient_noise", "optim.name"},
            "noise gives every row of an embedding a gradient, and lazy_adam is to step only those "
            "that were looked up",
            "set optim.gradient_noise = 0, or optim.name = \"adam\"");
  }
  const auto& d = c.e.dist;
  if (o.name == "adafactor" && d.strategy == "sharded") {
    c.wrong({"dist.strategy", "optim.name"},
            "adafactor needs the rows and columns of whole matrices, which slices cut",
            "use dist.strategy = \"all_reduce\" or \"parameter_server\"; its state is small: one "
            "number for each row and column");
  }
  if (d.deterministic && d.compress != "none") {
    c.wrong({"dist.compress", "dist.deterministic"},
            "\"" + d.compress + "\" rounds what dist.deterministic = true sums exactly",
            "use dist.compress = \"none\"");
  }
}

void check_buckets(Check& c) {
  const int64_t bytes = c.e.dist.bucket_bytes;
  if (bytes == 0 || bytes >= distributed::kLeastBucketBytes) return;
  c.wrong({"dist.bucket_bytes"},
          "must be 0 (automatic) or at least " + number(distributed::kLeastBucketBytes) + ", got " +
              number(bytes),
          "0 is 2 MiB over MPI and 25 MiB over NCCL");
}

void check_loss_scale(Check& c) {
  const auto& l = c.e.train.loss_scale;
  if (l.max > 0 && l.min > l.max) {
    c.wrong({"train.loss_scale.min", "train.loss_scale.max"},
            config::number_text(l.min) +
                " is above train.loss_scale.max = " + config::number_text(l.max),
            "lower it");
    return;
  }
  // An option that is 0 has the method's own bound.
  const bool fp16 = optim::may_be_fp16(c.e.train.precision);
  const std::string name = l.name == "auto" ? (fp16 ? "fairseq" : "none") : l.name;
  const auto* method = optim::find_loss_scale_method(name);
  if (method == nullptr) return;
  const bool scales = name != "none";
  const auto range = scales ? optim::loss_scale_bounds(l, *method)
                            : optim::LossScaleBounds{.least = l.min, .most = l.max};
  const double least = range.least, most = range.most;
  const auto bounds = [&] {
    return " \"" + name + "\" allows, " + config::number_text(least) +
           (std::isfinite(most) && most > 0 ? " to " + config::number_text(most) : " or more");
  };
  if (scales && least > most) {
    c.wrong({"train.loss_scale.min", "train.loss_scale.name"},
            config::number_text(least) + " is above the largest scale of \"" + name + "\", " +
                config::number_text(most),
            "lower it, or set train.loss_scale.max");
  } else if (l.init > 0 && (l.init < least || (most > 0 && l.init > most))) {
    c.wrong({"train.loss_scale.init", "train.loss_scale.min", "train.loss_scale.max",
             "train.loss_scale.name"},
            config::number_text(l.init) + " is outside of what" + bounds(),
            "choose it between them, or set train.loss_scale.min and train.loss_scale.max around "
            "it");
  }
}

// The key that says how long the warm-up is.
const char* warmup_key(const optim::ScheduleOptions& schedule) {
  return schedule.warmup_ratio > 0 ? "schedule.warmup_ratio" : "schedule.warmup_steps";
}

// Where the schedule decays to an end, its parts follow each other. Those of train.max_epochs are
// looked at when training knows its data (train/schedule_end.h).
void check_end(Check& c) {
  const auto& s = c.e.schedule;
  const int64_t total = schedule_length(c.e);
  const int64_t warmup = s.warmup_updates(total);
  const int64_t hold = s.name == "tri_stage" ? s.hold_steps : 0;
  if (total == 0 && c.e.train.max_epochs > 0) return;
  if (total == 0) {
    c.wrong({"schedule.name", "schedule.total_steps", "train.max_steps", "train.max_epochs"},
            "\"" + s.name + "\" must know where it ends",
            "set schedule.total_steps, train.max_steps or train.max_epochs");
  } else if (total <= warmup) {
    if (s.total_steps == 0) return;  // the warm-up is not shorter than the run, see below
    c.wrong({"schedule.total_steps", warmup_key(s)},
            "the decay would end, at update " + number(total) + ", inside the warm-up",
            "raise it above the warm-up of " + counted(warmup, "update"));
  } else if (total <= std::max(warmup, s.begin_steps) + hold) {
    // The one that moves the decay furthest: the other may not even have been given.
    const bool held = hold >= s.begin_steps;
    c.wrong({held ? "schedule.hold_steps" : "schedule.begin_steps",
             held ? "schedule.begin_steps" : "schedule.hold_steps", "schedule.total_steps",
             "train.max_steps", warmup_key(s)},
            "the decay would begin after its end, update " + number(total), "lower it");
  }
}

// The floor is compared with the highest rate that the run really has.
void check_floor(Check& c) {
  const auto& s = c.e.schedule;
  const ScaledRate rate(c.e);
  const double peak = rate.rate_after_warmup();
  if (s.min_lr <= peak) return;
  std::string what = config::number_text(s.min_lr) + " is above ";
  if (!rate.rate_is_peak()) {
    what += "the highest rate of noam, " + config::number_text(peak);
  } else if (rate.scaling == "none") {
    what += "optim.lr = " + config::number_text(peak);
  } else {
    what += "the peak, " + config::number_text(peak) +
            ": optim.lr scaled from optim.reference_batch to data.max_tokens * train.update_freq";
  }
  c.wrong({"schedule.min_lr", "optim.lr", "optim.lr_scaling", "optim.reference_batch",
           "data.max_tokens", "train.update_freq", "schedule.name", "schedule.d_model",
           "schedule.warmup_steps", "schedule.max_lr"},
          what, "the floor must not be above the peak");
}

// A warm-up that is a share of all updates.
void check_warmup_ratio(Check& c) {
  const auto& s = c.e.schedule;
  if (s.warmup_ratio <= 0) return;
  if (s.warmup_steps > 0) {
    c.wrong({"schedule.warmup_ratio", "schedule.warmup_steps"},
            "stands beside schedule.warmup_steps = " + number(s.warmup_steps) +
                ", and both say how long the warm-up is",
            "give one of them; schedule.warmup_steps = 0 leaves it to the share");
  }
  // Of a schedule that ends check_end() tells it.
  if (schedule_ends(c.e) || schedule_length(c.e) > 0 || c.e.train.max_epochs > 0) return;
  c.wrong({"schedule.warmup_ratio", "schedule.total_steps", "train.max_steps", "train.max_epochs"},
          "is a share of updates whose number nobody knows",
          "set train.max_steps or train.max_epochs, or give schedule.warmup_steps instead");
}

void check_schedule(Check& c) {
  const auto& s = c.e.schedule;
  const int64_t max_steps = c.e.train.max_steps;
  const int64_t warmup = s.warmup_updates(schedule_length(c.e));
  check_warmup_ratio(c);
  if (schedule_ends(c.e)) check_end(c);
  check_floor(c);
  if (max_steps > 0 && warmup >= max_steps) {
    c.wrong({warmup_key(s), "train.max_steps"},
            "a warm-up of " + counted(warmup, "update") + " is not shorter than the run (" +
                with_thousands(max_steps) + ")",
            std::string("lower ") + warmup_key(s) + " or raise train.max_steps");
  }
  const bool warms_up = s.warmup_steps > 0 || s.warmup_ratio > 0;
  if (s.warmup == "constant" && warms_up && !c.origins.given("schedule.warmup_init_lr")) {
    c.wrong({"schedule.warmup", "schedule.warmup_init_lr", warmup_key(s)},
            "a constant warm-up trains at schedule.warmup_init_lr, whose default of " +
                config::number_text(s.warmup_init_lr) + " is for a line that leaves it at once",
            "set schedule.warmup_init_lr to the rate of a small batch" +
                (c.e.optim.lr_scaling == "none"
                     ? std::string(", for instance a tenth of optim.lr")
                     : ": optim.lr = " + config::number_text(c.e.optim.lr) +
                           " is that of optim.reference_batch (Goyal et al. 2017, section 2.2)"));
  }
}

void check_stops(Check& c) {
  const auto& t = c.e.train;
  if (t.max_steps == 0 && t.max_epochs == 0 && t.max_hours == 0 && t.patience == 0) {
    c.wrong({"train.max_steps", "train.max_epochs", "train.max_hours", "train.patience"},
            "the run would never stop",
            "set at least one of train.max_steps, max_epochs, max_hours, patience");
  }
  // A division, since the product may overflow.
  if (t.patience > 0 && t.max_steps > 0 && t.patience >= (t.max_steps - 1) / c.e.eval.every + 1) {
    c.wrong({"train.patience", "train.max_steps", "eval.every"},
            "can never stop the run: " + counted(t.patience, "validation") + " every " +
                counted(c.e.eval.every, "update") + " do not fit into " +
                with_thousands(t.max_steps),
            "lower train.patience or eval.every, or drop it");
  }
  if (t.average_last > t.keep_last && c.origins.given("train.keep_last")) {
    c.wrong({"train.average_last", "train.keep_last"},
            number(t.average_last) + " checkpoints are to be averaged, train.keep_last keeps " +
                number(t.keep_last),
            "raise train.keep_last");
  }
}

void check_files_of(Check& c, const std::string& src_key, const std::string& tgt_key,
                    const std::vector<std::string>& src, const std::vector<std::string>& tgt) {
  if (src.size() == tgt.size()) return;
  // A file is missing on the shorter side; where that was not given at all, the other has the line.
  const bool lacks_target = tgt.size() < src.size();
  const std::string& blamed = lacks_target ? tgt_key : src_key;
  const std::string& other = lacks_target ? src_key : tgt_key;
  c.wrong({blamed, other}, count(src.size()) + " source and " + count(tgt.size()) + " target files",
          c.origins.of(other) + " and `" + blamed + "` go together, file for file");
}

// `[data]`, or the text of one of several decoders.
template <class Text>
void check_text(Check& c, const std::string& section, const Text& d) {
  const auto key = [&](const char* leaf) { return section + "." + leaf; };
  check_files_of(c, key("train_src"), key("train_tgt"), d.train_src, d.train_tgt);
  check_files_of(c, key("valid_src"), key("valid_tgt"), d.valid_src, d.valid_tgt);
  check_files_of(c, key("test_src"), key("test_tgt"), d.test_src, d.test_tgt);
  if (d.train_src.empty() && d.train_tgt.empty() && d.train_tsv.empty()) {
    c.wrong({key("train_src"), key("train_tgt"), key("train_tsv")}, "there is no training text",
            "set " + key("train_src") + " and " + key("train_tgt") + ", or " + key("train_tsv"));
  }
  const size_t files = d.train_src.size() + d.train_tsv.size();
  if (!d.train_weights.empty() && d.train_weights.size() != files) {
    c.wrong({key("train_weights"), key("train_src"), key("train_tsv")},
            count(d.train_weights.size()) + " weights for " + count(files) + " training files",
            "one weight for each pair of files, then one for each TSV file");
  }
  const bool has_tsv = !d.train_tsv.empty() || !d.valid_tsv.empty() || !d.test_tsv.empty();
  if (has_tsv && d.src_column == d.tgt_column) {
    c.wrong({key("tgt_column"), key("src_column")},
            "both sides are column " + number(d.src_column) + " of the TSV files",
            "columns count from 1");
  }
}

void check_sources(Check& c) {
  const auto& data = c.e.data;
  if (c.e.model.heads.empty() && data.heads.empty()) check_text(c, "data", data);
  for (size_t i = 0; i < data.heads.size(); ++i) {
    check_text(c, "data.heads." + count(i), data.heads[i]);
  }
}

void check_lengths(Check& c) {
  const auto& d = c.e.data;
  const int64_t longest = std::max(d.max_src_tokens, d.max_tgt_tokens);
  if (longest > d.max_tokens) {
    c.wrong({"data.max_tokens", "data.max_src_tokens", "data.max_tgt_tokens"},
            number(d.max_tokens) + " is less than the longest sentence that is let in (" +
                number(longest) + ")",
            "raise data.max_tokens, or lower data.max_src_tokens and data.max_tgt_tokens");
  }
  if (const auto learned = models::learned_positions(c.e.model); learned.tokens < longest) {
    c.wrong({learned.key, learned.choice, "data.max_src_tokens", "data.max_tgt_tokens"},
            number(learned.tokens) + " learned positions, sentences may have " + number(longest) +
                " tokens",
            "raise it to at least " + number(longest));
  }
  if (d.max_ratio > 0 && d.max_ratio < 1) {
    c.wrong({"data.max_ratio"},
            "must be 0 (off) or at least 1, got " + config::number_text(d.max_ratio),
            "2.5 is usual");
  }
}

void check_validation(Check& c) {
  const auto& d = c.e.data;
  const bool validates = c.e.model.heads.empty()
                             ? !d.valid_src.empty() || !d.valid_tgt.empty() || !d.valid_tsv.empty()
                             : has_validation(c.e);
  if (!validates && c.e.train.patience > 0) {
    c.wrong({"train.patience", "data.valid_src", "data.valid_tsv"}, "needs validation text",
            "set data.valid_src and data.valid_tgt, or data.valid_tsv");
  }
  if (!validates && c.e.eval.at_start) {
    c.wrong({"eval.at_start", "data.valid_src", "data.valid_tsv"}, "needs validation text",
            "set data.valid_src and data.valid_tgt, or data.valid_tsv");
  }
  if (!validates && c.e.schedule.name == "plateau") {
    c.wrong({"schedule.name", "data.valid_src", "data.valid_tsv"},
            "\"plateau\" needs validation text",
            "set data.valid_src and data.valid_tgt, or data.valid_tsv");
  }
  if (c.e.eval.best_metric == "bleu" && !c.e.eval.bleu) {
    c.wrong({"eval.best_metric", "eval.bleu"}, "\"bleu\" needs eval.bleu = true",
            "set eval.bleu = true, or eval.best_metric = \"nll\"");
  }
}

void check_decoding(Check& c) {
  const auto& d = c.e.decode;
  if (d.nbest > d.beam_size) {
    c.wrong({"decode.nbest", "decode.beam_size"},
            number(d.nbest) + " hypotheses from a beam of " + number(d.beam_size),
            "raise decode.beam_size or lower decode.nbest");
  }
  const auto decoders = models::decoders_of(c.e.model);
  for (size_t i = 0; i < decoders.size(); ++i) {
    const bool attends_once = decoders[i]->is<models::LstmDecoderOptions>();
    const int64_t layers =
        attends_once ? 1 : decoders[i]->visit([](const auto& part) { return part.num_layers; });
    if (d.alignment_layer < layers) continue;
    const std::string section = models::decoder_section(c.e.model, i);
    c.wrong({"decode.alignment_layer", section + ".num_layers", section + ".name"},
            attends_once ? "only layer 0 of an `lstm` decoder attends"
                         : "there is no layer " + number(d.alignment_layer) + " in a decoder of " +
                               number(layers),
            "layers count from 0; -1 is the last that attends");
    break;
  }
  if (d.max_len_a == 0 && d.min_len > d.max_len_b) {
    c.wrong({"decode.min_len", "decode.max_len_a", "decode.max_len_b"},
            "outputs must have at least " + number(d.min_len) + " and at most " +
                number(d.max_len_b) + " tokens",
            "raise decode.max_len_a or decode.max_len_b");
  }
}

void note_all(Check& c, const std::vector<PatternProblem>& problems) {
  for (const auto& problem : problems) c.wrong({problem.key}, problem.what, problem.hint);
}

// The file beside it that was meant, when one is near.
std::string file_hint(const fs::path& missing) {
  constexpr size_t kMost = 1000;  // a folder of many files would cost time
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(missing.parent_path(), failed), end;
       !failed && it != end && names.size() < kMost; it.increment(failed)) {
    names.push_back(it->path().filename().string());
  }
  const std::string near = closest(missing.filename().string(), names);
  return (near.empty() ? "" : "did you mean " + printable(near) + "? ") +
         "relative paths are relative to the file that states them";
}

std::vector<std::string> paths_of(const config::Key& key) {
  if (const auto* const* many = std::get_if<std::vector<std::string>*>(&key.value)) return **many;
  const auto* const* one = std::get_if<std::string*>(&key.value);
  if (one == nullptr || (*one)->empty()) return {};
  return {**one};
}

}  // namespace

bool schedule_ends(const Experiment& options) {
  return options.schedule.decays_to_an_end();
}

bool readable(const std::vector<config::Problem>& problems) {
  // Problems of the reader that belong to no key are those of whole files.
  return std::none_of(problems.begin(), problems.end(),
                      [](const auto& problem) { return problem.key.empty(); });
}

void check_rules(const Experiment& options, const config::Origins& origins,
                 std::vector<config::Problem>& problems) {
  Check check(options, origins, problems);
  check_parts(check);
  check_zero_gamma(check);
  check_tokenizer_files(check);
  check_subword_sampling(check);
  check_init(check);
  check_ties(check);
  check_schedule(check);
  check_piecewise(check);
  check_noam(check);
  check_optimizer(check);
  check_buckets(check);
  note_all(check, entry_problems(options));
  check_loss_scale(check);
  check_stops(check);
  check_sources(check);
  check_lengths(check);
  check_validation(check);
  check_decoding(check);
}

void check_patterns(const Experiment& options, const config::Origins& origins,
                    std::span<const optim::TensorName> tensors,
                    std::vector<config::Problem>& problems) {
  const auto of_the_model = [](const auto& problem) { return problem.key.starts_with("model"); };
  if (tensors.empty() || std::any_of(problems.begin(), problems.end(), of_the_model)) return;
  Check check(options, origins, problems);
  note_all(check, name_problems(options, tensors));
}

std::vector<config::Problem> missing_files(const config::Schema& schema,
                                           const config::Origins& origins,
                                           const std::vector<config::Problem>& problems,
                                           bool only_overridden) {
  std::vector<config::Problem> missing;
  for (const auto& key : schema.keys) {
    // The cache folder is made when it is not there.
    if (!key.meta.is_path || key.path == "data.cache_dir") continue;
    if (config::is_unreliable(problems, key.path)) continue;
    if (only_overridden && !origins.overridden(key.path)) continue;
    for (const auto& path : paths_of(key)) {
      const fs::path file = data::parse_input_path(path).file;
      std::error_code ignored;
      if (fs::exists(file, ignored)) continue;
      missing.push_back({origins.of(key.path), "no file " + printable(file.string(), 4096),
                         file_hint(file), key.path, origins.order_of(key.path)});
    }
  }
  return missing;
}

}  // namespace stretto::experiment
