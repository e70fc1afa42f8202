#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/program_path.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/configuration_file.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "data/file_digest.h"
#include "distill/labelling.h"
#include "distill/labels_record.h"
#include "distill/word_pairs.h"
#include "experiment/data_files.h"
#include "experiment/family_distillation.h"
#include "experiment/family_spec.h"
#include "experiment/num_threads.h"
#include "experiment/task_rules.h"
#include "store/checkpoint.h"
#include "store/folders.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kCoresOfProcess = 8;                   // of those that label
constexpr uint64_t kFewestBytes = 4;                 // of a file of pairs that has one
constexpr const char* kShortlist = "shortlist.tsv";  // of the student
constexpr const char* kRecord = "compress.json";     // of a folder that `stretto compress` made
// A process that trained for a killed command saves, and ends.
constexpr std::chrono::minutes kPatience{5};

struct DistillArguments {
  std::string teacher, student, run, labels, checkpoint;
  std::string level;  // empty: what the task has first
  Words overrides, teacher_keys, texts;
  int processes = 0;  // 0: by the cores
  int64_t bits = 8;
  bool keep_own = false, no_shortlist = false, quiet = false;

  bool labels_text() const { return level != "word"; }
  bool has_word_level() const { return level != "sequence"; }
  fs::path labels_folder() const {
    return labels.empty() ? fs::path(run) / "labels" : fs::path(labels);
  }
  fs::path packed_run() const { return fs::path(run) / ("int" + std::to_string(bits)); }
};

// What a distillation is made from.
struct Distillation {
  experiment::LoadedExperiment teacher, student;
  experiment::FamilyDistillation family;
  Words teacher_keys;  // of `stretto infer`, behind those of the command line
  Words keys;          // of the student's training, the same
};

const experiment::FamilyDistillation& distillation_of(const experiment::Experiment& experiment) {
  const auto* family = experiment::find_family(experiment);
  if (family != nullptr && family->distillation) return *family->distillation;
  Words able;
  for (const auto& one : experiment::families()) {
    if (one.distillation) able.emplace_back(one.options.name);
  }
  throw Error(ExitCode::kUsage,
              "stretto distill: models of " + experiment.task.name() + " cannot be distilled",
              "those of " + join(able, ", ") + " can");
}

// An option about labels would change nothing where there are none.
void require_no_labels(const DistillArguments& options) {
  const std::pair<const char*, bool> about_labels[] = {
      {"--text", !options.texts.empty()},
      {"--labels", !options.labels.empty()},
      {"--teacher-key", !options.teacher_keys.empty()},
      {"--keep-own", options.keep_own},
      {"--no-shortlist", options.no_shortlist},
      {"--processes", options.processes > 0}};
  for (const auto& [option, is_given] : about_labels) {
    if (!is_given) continue;
    throw Error(ExitCode::kUsage,
                std::string(option) + ": a teacher labels no text with --level word",
                "leave it out: the student trains on its own text; only --level sequence and both "
                "have labels");
  }
}

// What is there is looked at before hours of labelling, not behind them.
void require_own_folder(const DistillArguments& options) {
  std::error_code ignored;
  if (fs::equivalent(options.run, options.teacher, ignored)) {
    throw Error(ExitCode::kUsage, "--run " + options.run + " is the teacher's folder",
                "give the student a folder of its own");
  }
  const bool has_run = fs::exists(fs::path(options.run) / "config.toml", ignored);
  const bool has_labels = distill::read_labels_record(options.labels_folder()).has_value();
  if (!options.labels_text() || !has_run || has_labels) return;
  throw Error(ExitCode::kUsage,
              options.run + " holds a run, and " + options.labels_folder().string() +
                  " no labels that it could have learnt from",
              "give a new folder with --run, or the folder of its labels with --labels");
}

void require_level(const DistillArguments& options, const Distillation& made) {
  if (options.labels_text() && made.family.texts == nullptr) {
    throw Error(ExitCode::kUsage,
                "--level " + options.level + ": a teacher of " + made.student.options.task.name() +
                    " labels no text",
                "take --level word");
  }
  if (!options.labels_text()) require_no_labels(options);
  if (!options.has_word_level() || made.family.word_level_keys != nullptr) return;
  throw Error(ExitCode::kUsage,
              "--level " + options.level + ": a student of " + made.student.options.task.name() +
                  " cannot learn a teacher's probabilities",
              "take --level sequence");
}

// By whose tokenizer labels are read: at the level of words a student takes its teacher's.
const experiment::Experiment& reader_of_labels(const DistillArguments& options,
                                               const Distillation& made) {
  return options.has_word_level() ? made.teacher.options : made.student.options;
}

// Whose folder is another one than the student's, and whose checkpoints stay as they are.
void require_teacher_at_rest(const DistillArguments& options) {
  require_run(options.teacher);
  std::error_code ignored;
  if (fs::equivalent(options.teacher, options.run, ignored)) {
    throw Error(ExitCode::kUsage, "--run " + options.run + " is the teacher's folder",
                "give another one to the student");
  }
  if (!FileLock::is_held(fs::path(options.teacher) / ".lock")) return;
  throw Error(ExitCode::kUsage, options.teacher + " is being trained by another process",
              "wait until it ends, or stop it: a student has the teacher of one checkpoint");
}

// A configuration names it.
std::string utf8_of(const std::string& text) {
  if (is_valid_utf8(text)) return text;
  throw Error(
      ExitCode::kUsage,
      printable(text, 4096) + " is not UTF-8, and the student's configuration has to name it",
      "take another path: --run and --labels say where labels are, TEACHER and --checkpoint "
      "which teacher is asked for probabilities");
}

// A key that the command sets itself would be dropped without a word.
void require_free_keys(const Words& given, const Words& own, const std::string& option) {
  const auto key_of = [](const std::string& word) { return word.substr(0, word.find('=')); };
  for (const auto& word : given) {
    for (const auto& set : own) {
      if (key_of(word) != key_of(set)) continue;
      throw Error(
          ExitCode::kUsage,
          option + printable(word, 4096) + ": stretto distill sets " + key_of(set) + " itself",
          "leave it out");
    }
  }
}

Distillation load_distillation(DistillArguments& options) {
  require_teacher_at_rest(options);
  Distillation made;
  made.student = load_configuration(options.student, options.overrides, options.run);
  made.family = distillation_of(made.student.options);
  if (options.level.empty()) options.level = made.family.texts != nullptr ? "sequence" : "word";
  made.teacher = load_run_config(options.teacher, {}, Reads::kAnyData);
  const std::string theirs = made.teacher.options.task.name();
  const std::string own = made.student.options.task.name();
  if (theirs != own) {
    throw Error(ExitCode::kUsage,
                options.teacher + " is a model of " + theirs + ", and the student one of " + own,
                "a student learns the task of its teacher");
  }
  auto keys = options.teacher_keys;
  if (made.family.teacher_keys != nullptr) {
    made.teacher_keys =
        made.family.teacher_keys(made.teacher.options, reader_of_labels(options, made));
    require_free_keys(options.teacher_keys, made.teacher_keys, "--teacher-key ");
    keys.insert(keys.end(), made.teacher_keys.begin(), made.teacher_keys.end());
  }
  made.teacher = load_run_config(options.teacher, keys, Reads::kAnyData);
  if (made.family.require_match != nullptr) {
    made.family.require_match(made.teacher.options, made.student.options);
  }
  require_level(options, made);
  require_own_folder(options);
  return made;
}

// Of both with vocabularies of one size.
void tell_of_larger_student(const DistillArguments& options, const Distillation& made) {
  constexpr int64_t kRows = 8192;
  const auto& plan = experiment::find_family(made.student.options)->plan;
  if (!plan) return;
  const auto parameters_of = [&](const experiment::Experiment& experiment) {
    engine::CostRequest request{.experiment = experiment};
    if (plan->tables) request.sizes = plan->tables->sizes({.input = kRows, .output = kRows});
    return engine().model_cost(request).parameters;
  };
  const int64_t theirs = parameters_of(made.teacher.options);
  const int64_t own = parameters_of(made.student.options);
  if (own <= theirs) return;
  log::warn("the student has " + with_thousands(own) + " parameters, and its teacher " +
            options.teacher + " only " + with_thousands(theirs) + " (with " +
            with_thousands(kRows) + " pieces in both vocabularies): it is no smaller model");
}

Words infer_words(const DistillArguments& options, const Distillation& made, int threads,
                  const fs::path& source) {
  Words words{program_path().string(), "infer", options.teacher};
  words.insert(words.end(), options.teacher_keys.begin(), options.teacher_keys.end());
  words.insert(words.end(), made.teacher_keys.begin(), made.teacher_keys.end());
  words.push_back("run.threads=" + std::to_string(threads));
  if (!options.checkpoint.empty()) {
    words.insert(words.end(), {"--checkpoint", options.checkpoint});
  }
  words.push_back(source.string());
  return words;
}

// How a teacher decodes, as its resolved configuration has it, without comments.
std::string decoding_of(const experiment::LoadedExperiment& teacher) {
  std::string found;
  bool inside = false;
  for (const auto& line : split(teacher.resolved_toml, '\n')) {
    if (line.starts_with("[")) inside = line.starts_with("[decode");
    if (inside) found += line.substr(0, line.find("  # default")) + "\n";
  }
  return found;
}

// All that labels depend on. A teacher that was trained on since is another one.
std::string fingerprint_of(const DistillArguments& options, const Distillation& made,
                           const std::vector<experiment::TextToLabel>& texts) {
  nlohmann::ordered_json all;
  all["teacher"] = made.teacher.config_hash;
  all["steps"] = store::CheckpointStore(options.teacher).steps();
  all["checkpoint"] = options.checkpoint;
  all["keys"] = options.teacher_keys;
  all["own_keys"] = made.teacher_keys;
  all["decode"] = decoding_of(made.teacher);
  std::vector<std::string> paths;
  for (const auto& text : texts) paths.push_back(text.path);
  const auto digests = data::digests_of(paths, experiment::digest_setting_of(made.student.options));
  for (size_t i = 0; i < texts.size(); ++i) {
    all["texts"].push_back({{"hash", hex64(digests[i].hash)},
                            {"column", texts[i].column},
                            {"separator", int(texts[i].separator)}});
  }
  return hex64(xxh3_64(all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

// Whether a student's words are those between spaces, as in text that is in pieces already.
bool reads_whole_words(const DistillArguments& options, const Distillation& made) {
  const auto& reader = reader_of_labels(options, made);
  const auto* rules = experiment::find_task_rules(reader);
  if (rules == nullptr) return false;
  const auto tokenizer = rules->tokenizer_options(reader);
  return tokenizer && (tokenizer->type == "vocab" || tokenizer->type == "word");
}

// Labels the training text and adds the keys with which the student trains on it.
int label_text(const DistillArguments& options, Distillation& made) {
  auto texts = made.family.texts(made.student.options);
  for (const auto& path : options.texts) texts.push_back({.path = fs::absolute(path).string()});
  const int cores = static_cast<int>(experiment::num_threads(made.teacher.options));
  const int processes =
      options.processes > 0 ? options.processes : std::max(1, cores / kCoresOfProcess);
  const int threads = std::max(1, cores / processes);
  distill::LabellingSetup setup;
  setup.folder = utf8_of(fs::absolute(options.labels_folder()).string());
  setup.texts = texts;
  setup.fingerprint = fingerprint_of(options, made, texts);
  setup.processes = processes;
  setup.command = [&](const fs::path& source) {
    return infer_words(options, made, threads, source);
  };
  distill::Labelling labelling(std::move(setup));
  if (const int code = labelling.run(); code != 0) return code;
  const auto& labels = labelling.labels();
  log::info("the teacher labelled " + counted(labels.lines, "line") +
            (labels.left_out > 0 ? ", " + with_thousands(labels.left_out) + " are left out" : ""));
  const auto data = options.keep_own ? experiment::StudentData::kLabelledAndOwn
                                     : experiment::StudentData::kLabelled;
  for (auto& key : made.family.data_keys(made.student.options, labels.texts, data)) {
    made.keys.push_back(std::move(key));
  }
  if (options.no_shortlist || made.family.shortlist_keys == nullptr) return 0;
  distill::WordPairOptions how;
  how.splits_punctuation = !reads_whole_words(options, made);
  const fs::path pairs = fs::absolute(options.labels_folder()) /
                         (how.splits_punctuation ? "pairs.tsv" : "pairs_of_tokens.tsv");
  std::error_code ignored;
  if (!fs::exists(pairs, ignored)) {
    log::info("looking for words that translate each other");
    distill::write_word_pairs(pairs, distill::find_word_pairs(labels.texts, how));
  }
  if (fs::file_size(pairs) < kFewestBytes) {
    log::warn("the text has no words between spaces: the student gets no shortlist");
    return 0;
  }
  // The labels may be removed, and the student moved.
  const fs::path own = fs::absolute(options.run) / kShortlist;
  const bool has_name = is_valid_utf8(own.string());
  if (has_name) write_file_atomic(own, read_file(pairs));
  const std::string list = (has_name ? own : pairs).string();
  for (auto& key : made.family.shortlist_keys(list)) made.keys.push_back(std::move(key));
  return 0;
}

// Runs a command of this program to its end; a signal lets it save and leave.
int run_child(const Words& words) {
  const StopSignals signals;
  ChildProcess process(words);
  bool asked_to_stop = false;
  for (;;) {
    if (const auto code = process.poll()) {
      const bool unsaved = asked_to_stop && *code == 128 + ChildProcess::kEnd;
      return unsaved ? static_cast<int>(ExitCode::kInterrupted) : *code;
    }
    if (signals.requested() && !std::exchange(asked_to_stop, true)) {
      process.send(ChildProcess::kEnd);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// What was packed of a student that has trained on since, if `compress` made it. What a kill leaves
// of it is forgotten at the next start.
void forget_packed(const DistillArguments& options) {
  std::error_code none;
  const auto packed = fs::last_write_time(options.packed_run() / kRecord, none);
  if (none) return;
  const store::CheckpointStore store(options.run);
  const auto steps = store.steps();
  const bool is_older = std::ranges::any_of(steps, [&](int64_t step) {
    std::error_code gone;
    const auto saved = fs::last_write_time(store.path_of(step) / store::kManifestName, gone);
    return !gone && saved > packed;
  });
  if (is_older) store::remove_folder(options.packed_run(), kRecord);
}

// Until no process trains in the student's folder: one of a killed command may still save. Another
// one is named by the training that is then begun.
void wait_for_training(const DistillArguments& options) {
  const fs::path lock = fs::path(options.run) / ".lock";
  if (!FileLock::is_held(lock)) return;
  log::info("waiting for the process that trains in " + options.run);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (FileLock::is_held(lock) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

int train_student(const DistillArguments& options, const Distillation& made) {
  wait_for_training(options);
  Words words{program_path().string(), "train", options.student};
  words.insert(words.end(), options.overrides.begin(), options.overrides.end());
  words.insert(words.end(), made.keys.begin(), made.keys.end());
  words.insert(words.end(), {"--run", options.run});
  if (options.quiet) words.push_back("--quiet");
  const int code = run_child(words);
  forget_packed(options);
  return code;
}

int pack_student(const DistillArguments& options) {
  if (options.bits == 0) return 0;
  // Which looks at what is there already, and leaves it where it is the same.
  return run_child({program_path().string(), "compress", options.run, "--bits",
                    std::to_string(options.bits), "--run", options.packed_run().string()});
}

int run_distill(DistillArguments options) {
  require_own_start("stretto distill starts the processes that it needs",
                    "start it without mpirun, srun or torchrun");
  ignore_broken_pipes();
  log::set_quiet(options.quiet);
  auto made = load_distillation(options);
  tell_notes(made.student.origins);
  tell_of_larger_student(options, made);
  make_directories(options.run);
  const auto lock = FileLock::try_now(fs::path(options.run) / ".distill-lock", "stretto distill");
  if (options.has_word_level()) {
    made.keys = made.family.word_level_keys(utf8_of(fs::absolute(options.teacher).string()),
                                            utf8_of(options.checkpoint));
    require_free_keys(options.overrides, made.keys, "");
  }
  if (options.labels_text()) {
    if (const int code = label_text(options, made); code != 0) return code;
  }
  // Whatever the student's own rules refuse is said before it is trained.
  auto overrides = options.overrides;
  overrides.insert(overrides.end(), made.keys.begin(), made.keys.end());
  load_configuration(options.student, overrides, options.run);
  if (const int code = train_student(options, made); code != 0) return code;
  if (const int code = pack_student(options); code != 0) return code;
  const fs::path last = options.bits > 0 ? options.packed_run() : fs::path(options.run);
  log::info("the student is " + last.string() + ": stretto eval " + last.string());
  return 0;
}

}  // namespace

std::function<int()> declare_distill(CLI::App& app) {
  auto options = std::make_shared<DistillArguments>();
  app.add_option("TEACHER", options->teacher, "run folder of the teacher")
      ->required()
      ->type_name("");
  app.add_option("key=value", options->overrides, "keys that replace those of the student's file")
      ->type_name("");
  app.add_option("--student", options->student, "configuration of the student")
      ->required()
      ->type_name("CONFIG");
  app.add_option("--run", options->run, "run folder of the student")->required()->type_name("DIR");
  app.add_option(
         "--level", options->level,
         "sequence: the student trains on what the teacher writes for its training text; "
         "word: on its own text, towards the teacher's probabilities; both. Default the first "
         "that the task has")
      ->type_name("LEVEL")
      ->check(one_of({"sequence", "word", "both"}));
  app.add_option(
         "--text", options->texts,
         "more text for the teacher to label, which needs no labels: a line each; may stand "
         "several times")
      ->type_name("FILE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--labels", options->labels,
                 "folder of what the teacher writes, which several students may share; default "
                 "DIR/labels")
      ->type_name("DIR");
  app.add_option("--checkpoint", options->checkpoint,
                 "of the teacher: best, last, a step, a name, a path, or several with commas, an "
                 "ensemble; default best")
      ->type_name("NAME");
  app.add_option("--teacher-key", options->teacher_keys,
                 "key=value for the teacher, such as decode.beam_size=8; may stand several times")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--keep-own", options->keep_own,
               "train on the student's own training data too, beside the teacher's");
  app.add_option("--bits", options->bits,
                 "pack the trained student's weights with so many bits, into DIR/intBITS, as "
                 "`stretto compress` does; 0 leaves them as they are; default 8")
      ->type_name("N")
      ->check(one_of({"0", "2", "3", "4", "6", "8"}));
  app.add_flag("--no-shortlist", options->no_shortlist,
               "let the student choose among its whole vocabulary");
  app.add_option("--processes", options->processes,
                 "label with so many processes at a time; default one for every 8 cores")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  app.add_flag("--quiet", options->quiet, "only warnings and errors on the screen");
  return [options] { return run_distill(*options); };
}

}  // namespace stretto::cli
