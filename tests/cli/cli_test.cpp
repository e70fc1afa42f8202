#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "report/report_data.h"
#include "tests/cli/program.h"

namespace stretto {
namespace {

using stretto::testing::has;
using stretto::testing::Program;
using stretto::testing::ProgramResult;
using stretto::testing::shell_quoted;

constexpr const char* kCommands[] = {
    "train",  "eval",   "infer",    "score",  "tokenizer",  "average", "report",
    "check",  "schema", "describe", "doctor", "completion", "plan",    "replay",
    "search", "embed",  "import",   "export", "compress",   "bench",   "distill"};

/// A folder with a configuration that has no errors.
class Lab : public Program {
 public:
  Lab() {
    for (const char* name : {"a.src", "a.tgt"}) folder.write(name, "one line\n");
    folder.write("words.txt", "one\nline\n");
    config = folder.write("my.toml",
                          "[data]\ntrain_src = [\"a.src\"]\ntrain_tgt = [\"a.tgt\"]\n"
                          "valid_src = [\"a.src\"]\nvalid_tgt = [\"a.tgt\"]\n"
                          "[tokenizer]\ntype = \"vocab\"\nsrc_vocab = \"words.txt\"\n"
                          "[loss]\nlabel_smoothing = 0\n[train]\nmax_steps = 9000\n");
  }

  /// A run folder as training leaves it, without checkpoints.
  void make_run(const std::vector<std::string>& overrides = {}) const {
    std::vector<std::string> words{"check", config, "--resolved"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    write_run(run(words).out);
    folder.write("run/checkpoints/step_00000001/manifest.json", "{}");
  }

  std::string config;
};

TEST(CommandLine, EveryCommandHasHelpWithExamplesOnStdout) {
  const Program program;
  const auto overview = program.run({"--help"});
  EXPECT_EQ(overview.code, 0);
  for (const char* name : kCommands) {
    EXPECT_TRUE(has(overview.out, std::string("\n  ") + name + " ")) << name;
    const auto help = program.run({name, "--help"});
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_EQ(help.err, "") << name;
    EXPECT_TRUE(has(help.out, std::string("Usage: stretto ") + name)) << help.out;
    EXPECT_TRUE(has(help.out, std::string("Examples:\n  "))) << help.out;
    EXPECT_TRUE(has(help.out, std::string("stretto ") + name)) << help.out;
    EXPECT_EQ(program.run({"help", name}).out, help.out);
  }
}

/// Names of the shared objects that a command loaded, dlopen included: the dynamic loader's record.
std::string loaded_by(const Program& program, const std::vector<std::string>& words) {
  for (const auto& file : std::filesystem::directory_iterator(program.folder.path())) {
    if (file.path().filename().string().starts_with("loads.")) std::filesystem::remove(file);
  }
  std::string line = "LD_DEBUG=files LD_DEBUG_OUTPUT=loads " + shell_quoted(Program::path());
  for (const auto& word : words) line += " " + shell_quoted(word);
  EXPECT_EQ(program.shell(line, "the cat sat on the mat\n").code, 0) << line;
  std::string all;
  for (const auto& file : std::filesystem::directory_iterator(program.folder.path())) {
    if (file.path().filename().string().starts_with("loads.")) {
      all += stretto::testing::text_of(file.path());
    }
  }
  return all;
}

TEST(CommandLine, NeitherTheEngineNorMpiIsLoadedWhereNoTensorIsNeeded) {
  const Lab lab;
  lab.folder.write("ref", "the cat sat on the mat\n");
  // The engine computes the memory of a model that might not fit into this machine's.
  const char* kSmall = "data.max_tokens=512";
  std::vector<std::vector<std::string>> all{{"--help"},
                                            {"--version"},
                                            {"help", "train"},
                                            {"check", "my.toml", kSmall},
                                            {"check", "my.toml", kSmall, "--json"},
                                            {"describe", "optim"},
                                            {"schema"},
                                            {"score", "--reference", "ref"},
                                            {"completion", "bash"},
                                            {"doctor", "--quick"}};
  for (const char* name : kCommands) all.push_back({name, "--help"});
  for (const auto& words : all) {
    const std::string loaded = loaded_by(lab, words);
    ASSERT_TRUE(has(loaded, "libstretto_core")) << "the loader keeps no record";
    for (const char* object : {"libtorch", "libstretto_engine", "libc10", "libstretto_mpi"}) {
      EXPECT_FALSE(has(loaded, object)) << object << " by " << words.front();
    }
    if (words.front() == "doctor") continue;  // it looks whether MPI is there
    EXPECT_FALSE(has(loaded, "libmpi.so")) << words.front();
  }
  // The same record shows the engine where it is used.
  if (std::filesystem::exists(std::string(STRETTO_BINARY_DIR) + "/libstretto_engine.so")) {
    EXPECT_TRUE(has(loaded_by(lab, {"doctor"}), "libtorch"));
  }
}

TEST(CommandLine, VersionIsOneLine) {
  const auto version = Program().run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "stretto 0.1.0\n");
}

TEST(CommandLine, WithoutACommandTheOverviewGoesToStderr) {
  const auto nothing = Program().run({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_TRUE(has(nothing.err, "usage: stretto COMMAND"));
}

struct WrongWords {
  std::vector<std::string> words;
  std::string message;
};

TEST(CommandLine, WrongWordsAreNamedWithWhatWasMeant) {
  const std::vector<WrongWords> all{
      {{"trian", "x"}, "error: unknown command `trian`\n  did you mean `train`?\n"},
      {{"--quiet"}, "error: unknown option `--quiet`\n  `stretto --help` lists the commands\n"},
      {{"train"},
       "error: stretto train: CONFIG is missing\n  `stretto train --help` shows how it is used\n"},
      {{"train", "x.toml", "--rnu", "a"},
       "error: stretto train: unknown option `--rnu`\n"
       "  did you mean `--run`? `stretto train --help` lists the options\n"},
      {{"train", "--quite"},
       "error: stretto train: unknown option `--quite`\n"
       "  did you mean `--quiet`? `stretto train --help` lists the options\n"},
      {{"train", "x.toml", "--run"},
       "error: stretto train: --run needs a value\n"
       "  `stretto train --help` shows how it is used\n"},
      {{"infer", "run", "--beam", "many"},
       "error: stretto infer: --beam: must be a whole number from 1 to 1000, got `many`\n"
       "  `stretto infer --help` shows how it is used\n"},
      {{"infer", "run", "--beam", "0"},
       "error: stretto infer: --beam: must be a whole number from 1 to 1000, got `0`\n"
       "  `stretto infer --help` shows how it is used\n"},
      {{"report", "a", "b"},
       "error: no run folder at a\n  train first: stretto train CONFIG --run a\n"},
      {{"tokenizer", "trian"},
       "error: stretto tokenizer: there is no `trian`; there are train, encode, decode\n"
       "  did you mean `train`?\n"},
      {{"tokenizer", "train", "a.txt"},
       "error: stretto tokenizer train: --output is missing\n"
       "  `stretto tokenizer train --help` shows how it is used\n"},
      {{"score", "--metric", "blue", "--reference", "x"},
       "error: stretto score: --metric: must be one of bleu, chrf, chrf++, ter, wer, cer, squad1, "
       "squad2, got `blue`; did you mean `bleu`?\n  `stretto score --help` shows how it is used\n"},
      {{"completion", "tcsh"},
       "error: stretto completion: SHELL: must be one of bash, zsh, fish, got `tcsh`\n"
       "  `stretto completion --help` shows how it is used\n"},
      {{"describe", "optmi"},
       "error: there is no section, key or component `optmi`\n  did you mean `optim`?\n"},
      {{"eval", "/no/run"},
       "error: no run folder at /no/run\n  train first: stretto train CONFIG --run /no/run\n"},
      {{"average", "/tmp"},
       "error: stretto average: give either --last N or --checkpoints A,B,C\n"
       "  `stretto average RUN --last 5` is usual\n"},
      {{"average", "/tmp", "--last", "2", "train.keep_last=5"},
       "error: stretto average takes no key=value, but there is `train.keep_last=5`\n"
       "  train, check, eval and infer take keys of the configuration; `stretto average --help` "
       "lists the options\n"},
      {{"search", "/no/search.toml", "search.max_trials=11"},
       "error: stretto search takes no key=value, but there is `search.max_trials=11`\n"
       "  edit the search file, whose `overrides` change the configuration; `stretto search "
       "--help` lists the options\n"},
      {{"train", "--optim.lr=3"},
       "error: stretto train: unknown option `--optim.lr=3`\n"
       "  keys of the configuration have no dashes: write `optim.lr=3`\n"},
      {{"train", "/no/config.toml"},
       "error: no configuration file /no/config.toml\n"
       "  give the path of a .toml file: the recipes are in configs/\n"},
      {{"replay", "/no/x.json"},
       "error: no report /no/x.json\n  training writes them to RUN/forensics/step_….json\n"},
  };
  const Program program;
  for (const auto& [words, message] : all) {
    const auto outcome = program.run(words);
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_EQ(outcome.err, message);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(CommandLine, ControlCharactersOfAWordNeverReachTheTerminal) {
  const auto outcome = Program().run({"\x1b[31mred"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_FALSE(has(outcome.err, "\x1b"));
}

TEST(CommandLine, WhatNobodyForesawIsABugAndNotTheNumbers) {
  const Lab lab;
  const auto check = shell_quoted(Program::path()) + " check my.toml";
  const auto bug = lab.shell("STRETTO_FAILPOINT=file.read:bug " + check);
  EXPECT_EQ(bug.code, 73) << bug.err;
  EXPECT_TRUE(has(bug.err, "failpoint file.read\n")) << bug.err;
  EXPECT_TRUE(has(bug.err, "a bug in Stretto")) << bug.err;
  EXPECT_TRUE(has(bug.err, "STRETTO_TRACE=1")) << bug.err;
  EXPECT_FALSE(has(bug.err, "optim.lr")) << bug.err;
}

TEST(CommandLine, WithoutMemoryOrFilesTheCodeSaysSo) {
  const Lab lab;
  const auto check = shell_quoted(Program::path()) + " check my.toml";
  const auto memory = lab.shell("STRETTO_FAILPOINT=file.read:throw " + check);
  EXPECT_EQ(memory.code, 71) << memory.err;
  EXPECT_TRUE(has(memory.err, "error: out of memory\n")) << memory.err;
  const auto path = lab.run({"tokenizer", "encode", std::string(300, 'a')});
  EXPECT_EQ(path.code, 74) << path.err;
  EXPECT_FALSE(has(path.err, "bug")) << path.err;
}

TEST(CheckCommand, TellsAllErrorsOrNone) {
  const Lab lab;
  // All is read, however slow this machine is.
  EXPECT_EQ(lab.run({"check", lab.config, "--full"}).out, lab.config + ": no errors\n");
  const auto wrong =
      lab.run({"check", "my.toml", "optim.beta1=1.5", "optim.lrr=1", "train.patience=x"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(
      wrong.err,
      "error: command line, `optim.beta1=1.5`: `optim.beta1` must be in [0, 1), got 1.5\n"
      "  decay of the first moment (adam, adamw, lazy_adam, radam, lamb; novograd, usually 0.95; "
      "muon, of what adamw steps) "
      "(number, default 0.9)\n"
      "error: command line, `optim.lrr=1`: unknown key `optim.lrr`\n"
      "  did you mean `optim.lr`? (number, default 0.0005)\n"
      "error: command line, `train.patience=x`: `train.patience` must be an integer, got the "
      "string \"x\"\n"
      "  \"x\" is not a whole number; stop after this many validations without improvement "
      "of eval.best_metric; 0 = never (integer, default 0, in validations)\n"
      "3 errors\n");
}

TEST(CheckCommand, NotesWhatIsSeldomMeantWithoutFailing) {
  const Lab lab;
  const auto outcome = lab.run({"check", "my.toml", "optim.lr=0.5", "--full"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(
      has(outcome.out, "note SC004: command line, `optim.lr=0.5`: `optim.lr`: a peak of 0.5"));
  EXPECT_TRUE(has(outcome.out, "my.toml: no errors, 1 note\n"));
  const auto json =
      nlohmann::json::parse(lab.run({"check", "my.toml", "optim.lr=0.5", "--json"}).out);
  EXPECT_EQ(json["sound"], true);
  EXPECT_EQ(json["findings"].size(), 1u);
}

TEST(CheckCommand, LooksAtTheTextAndLeavesWithTrainingsCode) {
  const Lab lab;
  lab.folder.write("a.tgt", "one line\nand another\n");
  const auto outcome = lab.run({"check", "my.toml", "--full"});
  EXPECT_EQ(outcome.code, 65);
  EXPECT_TRUE(has(outcome.err,
                  "error: my.toml:2:1: `data.train_src`: the two sides do not have the same number "
                  "of lines: "))
      << outcome.err;
  EXPECT_FALSE(has(outcome.err, "2 errors")) << "one pair of files, one cause: " << outcome.err;
  const auto json = nlohmann::json::parse(lab.run({"check", "my.toml", "--full", "--json"}).out);
  EXPECT_EQ(json["sound"], false);
  EXPECT_EQ(json["exit_code"], 65);
  EXPECT_EQ(json["errors"].size(), 1u);
  EXPECT_EQ(json["errors"][0]["place"], "my.toml:2:1: `data.train_src`");
  // A mistake of the configuration comes first, in training too.
  EXPECT_EQ(lab.run({"check", "my.toml", "--full", "optim.lr=0"}).code, 2);
}

TEST(CheckCommand, OfAnotherMachineWhatIsMissingHereIsNoError) {
  const Lab lab;
  std::filesystem::remove(lab.folder.path() / "a.src");
  EXPECT_EQ(lab.run({"check", "my.toml"}).code, 2);
  const auto outcome = lab.run({"check", "my.toml", "--full", "--elsewhere", "run.device=cuda"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "not looked at: `data.train_src`: no file ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "; `run.device`: whether the other machine has a GPU"))
      << outcome.out;
  EXPECT_TRUE(has(outcome.out, "my.toml: no errors in what was looked at\n")) << outcome.out;
  const auto json = nlohmann::json::parse(
      lab.run({"check", "my.toml", "--full", "--elsewhere", "--json", "run.device=cuda"}).out);
  EXPECT_EQ(json["sound"], true);
  EXPECT_EQ(json["unread"].size(), 3u);
  EXPECT_EQ(json["config_hash"].get<std::string>().size(), 16u);
  const auto resolved = lab.run({"check", "my.toml", "--elsewhere", "--resolved"});
  EXPECT_EQ(resolved.code, 0) << resolved.err;
  EXPECT_TRUE(has(resolved.out, "a.src"));
  // What is here is looked at all the same, and so is the configuration.
  lab.folder.write("words.txt", "two words\n");
  EXPECT_EQ(lab.run({"check", "my.toml", "--elsewhere", "--full"}).code, 65);
  EXPECT_EQ(lab.run({"check", "my.toml", "--elsewhere", "optim.lr=0"}).code, 2);
}

TEST(CheckCommand, TheResolvedCopyIsAConfigurationItself) {
  const Lab lab;
  const auto resolved = lab.run({"check", "my.toml", "--resolved"}).out;
  lab.folder.write("elsewhere/copy.toml", resolved);
  EXPECT_EQ(lab.run({"check", "elsewhere/copy.toml", "--resolved"}).out, resolved);
}

TEST(TrainCommand, RefusesAnotherExperimentInTheSameFolderWithADiff) {
  const Lab lab;
  lab.make_run();
  const auto outcome =
      lab.run({"train", "my.toml", "--run", "run", "optim.lr=0.001", "run.threads=1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "error: run holds a run of another configuration:\n"
            "  optim.lr: 0.0005 in the run, 0.001 now\n"
            "  train into another folder with --run, or give the old values\n");
}

TEST(TrainCommand, SaysHowARunIsExtendedWhereItsLengthShapesTheSchedule) {
  const Lab lab;
  lab.make_run({"schedule.name=cosine"});
  const auto outcome = lab.run(
      {"train", "my.toml", "--run", "run", "schedule.name=cosine", "train.max_steps=10000"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "train.max_steps: 9000 in the run, 10000 now")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "--extend")) << outcome.err;
}

TEST(EvalCommand, RefusesOverridesOfWhatWasTrained) {
  const Lab lab;
  lab.make_run();
  const auto outcome = lab.run({"eval", "run", "model.d_model=256", "decode.beam_size=2"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.err,
      "error: command line, `model.d_model=256`: `model.d_model`: fixed, since the run was trained "
      "with another value\n"
      "  decode.*, eval.*, run.threads, run.device and run.packed_weights may be changed here, and "
      "how "
      "files are read: "
      "data.bad_samples\n");
  EXPECT_EQ(lab.run({"infer", "run", "no_such_file.txt"}).err,
            "error: no file no_such_file.txt\n  without files, stdin is read\n");
  EXPECT_EQ(lab.run({"infer", "run", "--nbest", "9", "--beam", "3"}).code, 2);
  lab.folder.write("half/config.toml", "");
  EXPECT_EQ(lab.run({"eval", "half"}).err,
            "error: half is not a run: config.toml or run.json is missing\n"
            "  give the folder that `stretto train` wrote\n");
  lab.folder.write("seeds/seeds.json", "{}");
  EXPECT_EQ(lab.run({"eval", "seeds"}).err,
            "error: seeds holds the runs of several seeds\n  give one of them: seeds/seed_N\n");
}

TEST(ReportCommand, RendersThePageFromTheMetricsAlone) {
  const Lab lab;
  lab.make_run({"run.name=A title"});
  EXPECT_EQ(lab.run({"report", "run"}).code, 2) << "there are no metrics yet";
  lab.folder.write("run/metrics.jsonl",
                   "{\"step\":1,\"epoch\":0,\"event\":\"train\",\"loss\":5.5}\n"
                   "{\"step\":2,\"epoch\":0,\"event\":\"end\",\"reason\":\"max_steps\"}\n");
  const auto outcome = lab.run({"report", "run"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "run/report.html\n");
  const auto page = stretto::testing::text_of(lab.folder.path() / "run/report.html");
  EXPECT_TRUE(has(page, "A title"));
  EXPECT_TRUE(has(page, "max_steps"));
}

TEST(ReportCommand, LeavesABrokenLineOutAndNamesIt) {
  const Lab lab;
  lab.make_run({"loss.label_smoothing=0.1"});
  const std::string first = "{\"step\":1,\"epoch\":1,\"event\":\"valid\",\"loss\":5.5}\n";
  lab.folder.write("run/metrics.jsonl",
                   first + "{\"step\":2,\"ep\xff\n" +
                       "{\"step\":3,\"epoch\":1,\"event\":\"valid\",\"loss\":4.25}\n");
  auto outcome = lab.run({"report", "run"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "run/metrics.jsonl:2: left out")) << outcome.err;
  const auto page = stretto::testing::text_of(lab.folder.path() / "run/report.html");
  EXPECT_TRUE(has(page, "best 4.250 at step 3"));
  EXPECT_TRUE(has(page, "with label smoothing 0.1")) << "the loss stands beside a perplexity";
  lab.folder.write("run/metrics.jsonl", "nothing\nof this\n");
  outcome = lab.run({"report", "run"});
  EXPECT_EQ(outcome.code, 65) << "nothing is left to show";
  EXPECT_TRUE(has(outcome.err, "run/metrics.jsonl:1")) << outcome.err;
}

TEST(ReportCommand, ShowsWhatTrainingKeptForThePage) {
  const Lab lab;
  lab.make_run();
  lab.folder.write("run/metrics.jsonl", "{\"step\":2,\"event\":\"train\",\"loss\":5.5}\n");
  const auto page = [&] {
    const auto outcome = lab.run({"report", "run"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err + stretto::testing::text_of(lab.folder.path() / "run/report.html");
  };
  EXPECT_TRUE(has(page(), "no samples, no machine and no facts: there is no run/report.json"));
  report::ReportContent content;
  content.machine = {{"processor", "Of another day"}};
  content.facts = {{"parameters", "4,711"}};
  content.samples_step = 2;
  content.samples = {
      report::TextPairSample{.input = "ein Haus", .output = "a home", .reference = "a house"}};
  const auto path = lab.folder.path() / "run/report.json";
  report::write_report_data(path, content);
  const std::string whole = page();
  for (const char* words : {"Of another day", "4,711", "Sample translations at step 2", "a house"})
    EXPECT_TRUE(has(whole, words)) << words;
  EXPECT_FALSE(has(whole, "warning"));
  lab.folder.write("run/report.json", "{\"format\":1,");
  const std::string without = page();
  EXPECT_TRUE(has(without, "warning: the page has no samples")) << without.substr(0, 500);
  EXPECT_TRUE(has(without, "run/report.json:1:")) << without.substr(0, 500);
  EXPECT_FALSE(has(without, "Of another day"));
}

TEST(DescribeCommand, KnowsSectionsKeysAndComponents) {
  const Program program;
  EXPECT_TRUE(has(program.run({"describe"}).out, "[schedule]"));
  EXPECT_TRUE(has(program.run({"describe", "optim"}).out, "beta2 = 0.98"));
  EXPECT_TRUE(has(program.run({"describe", "adamw"}).out, "`adamw` is a value of optim.name"));
  EXPECT_TRUE(has(program.run({"describe", "grid"}).out, "bits_of"));
  EXPECT_TRUE(has(program.run({"describe", "grid.rounding"}).out, "least_error"));
  const auto both = program.run({"describe", "optim.lr", "nothing_at_all"});
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(both.out, "") << "all names or none";
  EXPECT_TRUE(nlohmann::json::accept(program.run({"schema"}).out));
  EXPECT_EQ(program.run({"describe", "--schema"}).out, program.run({"schema"}).out);
}

TEST(DoctorCommand, SpeaksJson) {
  const auto json = nlohmann::json::parse(Program().run({"doctor", "--quick", "--json"}).out);
  EXPECT_GE(json["cores"], 1);
  EXPECT_GT(json["memory_bytes"], 0);
  EXPECT_TRUE(json["precisions"].contains("bf16"));
  EXPECT_TRUE(json["advice"].is_array());
  EXPECT_EQ(json["gpu_fallbacks"], nlohmann::json::array()) << "the engine knows, and is not asked";
}

TEST(DoctorCommand, OpensTheEngineUnlessToldNotTo) {
  const Program program;
  const auto outcome = program.run({"doctor", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  if (json["engine"] == "") GTEST_SKIP() << "this build has no engine";
  EXPECT_EQ(json["engine_error"], "");
  EXPECT_TRUE(json["engine_text"].get<std::string>().starts_with("libtorch 2."))
      << json["engine_text"];
  const auto text = program.run({"doctor"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "\n  engine     libtorch 2.")) << text.out;
}

TEST(DoctorCommand, NamesOperatorsWithoutAKernelOnAGpuInACudaBuildAlone) {
  const Program program;
  const auto json = nlohmann::json::parse(program.run({"doctor", "--json"}).out);
  if (json["engine_text"] == "") GTEST_SKIP() << "this build has no engine";
  const auto& names = json["gpu_fallbacks"];
  ASSERT_TRUE(names.is_array());
  const std::string text = program.run({"doctor"}).out;
  EXPECT_EQ(has(text, "\nOperators without a kernel on a GPU"), !names.empty()) << text;
  for (const auto& name : names) EXPECT_TRUE(has(text, name.get<std::string>())) << name;
}

// What bash offers for a line, by running its script with the variables that bash would set.
std::string offered(const Program& program, const std::string& line) {
  const std::string script = "source <(" + stretto::testing::shell_quoted(Program::path()) +
                             " completion bash)\n"
                             "compopt() { :; }\n"
                             "COMP_LINE=" +
                             stretto::testing::shell_quoted(line) +
                             "\n"
                             "COMP_POINT=${#COMP_LINE}\n"
                             "read -ra COMP_WORDS <<< \"$COMP_LINE\"\n"
                             "[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')\n"
                             "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                             "_stretto\n"
                             "echo \"${COMPREPLY[*]}\"\n";
  const auto outcome = program.shell("bash -c " + stretto::testing::shell_quoted(script));
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

TEST(CompletionCommand, BashOffersCommandsOptionsKeysAndValues) {
  const Program program;
  EXPECT_EQ(offered(program, "stretto tr"), "train\n");
  EXPECT_EQ(offered(program, "stretto train --"),
            "--help --run --extend --accept-data --until --seeds --json --quiet --processes "
            "--restarts\n");
  EXPECT_EQ(offered(program, "stretto train my.toml schedule.w"),
            "schedule.warmup_steps= schedule.warmup_ratio= schedule.warmup_init_lr= "
            "schedule.warmup=\n");
  EXPECT_EQ(offered(program, "stretto train my.toml optim.name=a"),
            "adam adamw adagrad adafactor\n");
  EXPECT_EQ(offered(program, "stretto infer run decode.m"),
            "decode.method= decode.max_len_a= decode.max_len_b= decode.min_len= "
            "decode.min_p= "
            "decode.max_tokens=\n");
  EXPECT_EQ(offered(program, "stretto tokenizer en"), "encode\n");
}

class CompletionIn : public ::testing::TestWithParam<const char*> {};

TEST_P(CompletionIn, TheShellReadsItsScript) {
  const std::string shell = GetParam();
  const Program program;
  if (program.shell("command -v " + shell).code != 0) {
    GTEST_SKIP() << "there is no " << shell << " here";
  }
  program.folder.write("script", program.run({"completion", shell}).out);
  const auto read = program.shell(shell + " -n script");
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_EQ(read.err, "");
  program.folder.write("script", "if (\n");
  EXPECT_NE(program.shell(shell + " -n script").code, 0) << shell << " -n finds nothing wrong";
}

INSTANTIATE_TEST_SUITE_P(Shells, CompletionIn, ::testing::Values("bash", "zsh", "fish"),
                         [](const auto& shell) { return std::string(shell.param); });

TEST(CompletionCommand, ZshAndFishNameEveryCommandOptionAndKey) {
  const Program program;
  for (const char* shell : {"zsh", "fish"}) {
    const auto script = program.run({"completion", shell}).out;
    for (const char* name : kCommands) EXPECT_TRUE(has(script, name)) << shell << " " << name;
    for (const char* word : {"schedule.warmup_steps=", "extend", "checkpoint", "adamw"}) {
      EXPECT_TRUE(has(script, word)) << shell << " " << word;
    }
  }
}

}  // namespace
}  // namespace stretto
