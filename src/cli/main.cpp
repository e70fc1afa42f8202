// stretto: the command line. It links no libtorch; see cli/engine.h.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/named_output.h"
#include "base/stdout.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "distributed/failure.h"
#include "distributed/make_group.h"
#include "distributed/rank_report.h"

namespace stretto::cli {
namespace {

constexpr std::array kCommands{
    Command{"train", "train a model, or go on with a run",
            "  stretto train my.toml\n"
            "  stretto train my.toml --run runs/big model.d_model=512 optim.lr=7e-4\n"
            "  stretto train my.toml --run runs/big train.max_steps=50000   # go on for longer\n"
            "  stretto train my.toml --processes 4 --restarts 3\n"
            "  stretto train my.toml --run runs/five --seeds 5 --json > five.json",
            &declare_train},
    Command{"eval", "score a run: loss, perplexity, BLEU, accuracy, F1",
            "  stretto eval runs/my\n"
            "  stretto eval runs/my --checkpoint averaged --json\n"
            "  stretto eval runs/my --src test.en --tgt test.de decode.beam_size=8\n"
            "  stretto eval runs/my --processes 4 --hypotheses output.txt\n"
            "  stretto eval runs/my --src a.en --tgt b.de --per-line scores.tsv eval.bleu=false\n"
            "  stretto eval runs/lm --data lines.txt --per-line scores.tsv",
            &declare_eval},
    Command{"infer",
            "run a model on lines: translations, continued texts, labels, answers, masked words",
            "  stretto infer runs/my < input.txt > output.txt\n"
            "  echo \"a red house\" | stretto infer runs/my --beam 8 --nbest 3 --scores\n"
            "  stretto infer runs/my --checkpoint 8000,9000,10000 input.txt   # an ensemble\n"
            "  echo \"a fine film\" | stretto infer runs/reviews\n"
            "  stretto infer runs/lm --prompt \"The old house\" --stream",
            &declare_infer},
    Command{"embed", "turn each line into a vector, with the encoder of a run",
            "  stretto embed runs/my < lines.txt > vectors.jsonl\n"
            "  stretto embed runs/my --normalize --output vectors.npy lines.txt\n"
            "  stretto embed runs/my --pooling cls --max-tokens 128 run.threads=4 < lines.txt",
            &declare_embed},
    Command{
        "score",
        "BLEU, chrF, chrF++ or TER of text, WER of transcripts, exact match and F1 of answers",
        "  stretto score --metric bleu --reference test.de < output.txt\n"
        "  stretto score --metric chrf++ --reference a.de b.de --json < output.txt\n"
        "  stretto score --reference test.de --bootstrap 1000 --against other.txt < output.txt\n"
        "  stretto score --metric wer --reference transcripts.txt < recognised.txt\n"
        "  stretto score --metric squad2 --reference dev-v2.0.json --json < predictions.json",
        &declare_score},
    Command{"tokenizer", "train a sub-word model, split text, join it again",
            "  stretto tokenizer train --vocab-size 8000 --output my.model a.txt b.txt.gz\n"
            "  stretto tokenizer encode my.model < text > pieces\n"
            "  stretto tokenizer decode runs/my < pieces > text",
            &declare_tokenizer},
    Command{"search", "try hyperparameters, and train the best further",
            "  stretto search space.toml --dir searches/lr\n"
            "  stretto search space.toml --dir searches/lr --json > trials.json\n"
            "  stretto search explain searches/lr        # the competitors of each rung\n"
            "  stretto search describe method.asha       # the keys of a search file\n"
            "  stretto train searches/lr/best.toml --run runs/best",
            &declare_search, "edit the search file, whose `overrides` change the configuration"},
    Command{
        "distill", "train a small model on what a large one writes",
        "  stretto distill runs/big --student small.toml --run runs/small\n"
        "  stretto distill runs/big --student small.toml --run runs/small --checkpoint last,best "
        "--teacher-key decode.beam_size=8\n"
        "  stretto distill runs/big --student small.toml --run runs/small --level both --bits 0 "
        "optim.lr=1e-3",
        &declare_distill},
    Command{"average", "mean of the weights of several checkpoints",
            "  stretto average runs/my --last 5\n"
            "  stretto average runs/my --checkpoints 8000,9000,10000 --name late",
            &declare_average},
    Command{
        "compress", "make a run small: weights of few bits, weights that are zero",
        "  stretto compress runs/my --bits 8 --run runs/my-int8\n"
        "  stretto compress runs/my --bits 4 --group 32 --rounding calibrated --run runs/my-int4\n"
        "  stretto compress runs/my --bits 8 --prune 0.5 --run runs/my-sparse\n"
        "  stretto compress runs/my --remove-units 0.5 --run runs/my-narrow\n"
        "  stretto compress runs/small runs/big --grid grid.toml --dir sweeps/sizes",
        &declare_compress},
    Command{"bench", "how fast a model runs, in each precision, and where the time goes",
            "  stretto bench runs/my\n"
            "  stretto bench runs/my --precision fp32,int8 run.threads=1 --json\n"
            "  stretto bench my.toml",
            &declare_bench},
    Command{"import", "make a run of a model folder of transformers",
            "  stretto import bert-base-uncased/ --run runs/bert\n"
            "  stretto import all-MiniLM-L6-v2/ --run runs/minilm --encoder-only\n"
            "  stretto import resnet50.pth --run runs/resnet50 --labels imagenet.txt",
            &declare_import},
    Command{"export", "write a run's model for transformers or other programs",
            "  stretto export runs/my --format hf my-model/\n"
            "  stretto export runs/my --format hf my-model/ --checkpoint averaged\n"
            "  stretto export runs/en-de --format ctranslate2 --weights int8 en-de-ct2/",
            &declare_export},
    Command{"replay", "run an update that was not finite again, every tensor watched",
            "  stretto replay runs/my/forensics/step_00000123.json\n"
            "  stretto replay runs/my/forensics/step_00000123.json --json run.device=cpu",
            &declare_replay},
    Command{"report", "write report.html of a run anew, or a page that compares several runs",
            "  stretto report runs/my\n"
            "  stretto report runs/a runs/b runs/c          # comparison.html\n"
            "  stretto report runs/five/seed_* --output seeds.html --json > seeds.json",
            &declare_report},
    Command{"check", "say what is wrong with a configuration, without training",
            "  stretto check my.toml\n"
            "  stretto check my.toml model.d_model=512 --resolved\n"
            "  stretto check my.toml --processes 8 --json",
            &declare_check},
    Command{"plan", "which model for a time and a size, or what an update costs on more processes",
            "  stretto plan --hours 8 --deploy-mb 20 my.toml\n"
            "  stretto plan --scaling my.toml --world-size 64\n"
            "  stretto plan --scaling my.toml --run runs/my --world-size 16 --per-host 8 "
            "--link-gbit 25\n"
            "  stretto plan --scaling --compute-ms 120 --gradient-mb 240 --link-gbit 1 "
            "--world-size 2 --json",
            &declare_plan},
    Command{"describe", "explain a section, a key or a component",
            "  stretto describe\n"
            "  stretto describe optim\n"
            "  stretto describe schedule.warmup_steps adamw",
            &declare_describe},
    Command{"schema", "JSON schema of the configuration, for editors",
            "  stretto schema > stretto.schema.json", &declare_schema},
    Command{"doctor", "what this machine has, and what would make it faster",
            "  stretto doctor\n  stretto doctor --json", &declare_doctor},
    Command{"completion", "completion for bash, zsh or fish",
            "  eval \"$(stretto completion bash)\"                            # in ~/.bashrc\n"
            "  stretto completion zsh > ~/.zfunc/_stretto\n"
            "  stretto completion fish > ~/.config/fish/completions/stretto.fish",
            &declare_completion},
};

std::string overview() {
  std::string text =
      "Stretto trains and runs sequence models.\n\n"
      "usage: stretto COMMAND [OPTION…]\n\n";
  for (const auto& command : kCommands) {
    std::string name = command.name;
    name.resize(12, ' ');
    text += "  " + name + command.summary + "\n";
  }
  text +=
      "\n  --version   print the version\n"
      "  --help      print this, or, after a command, its options and examples\n\n"
      "Examples:\n"
      "  stretto check my.toml\n"
      "  stretto train my.toml --run runs/my optim.lr=7e-4\n"
      "  stretto infer runs/my < input.txt > output.txt\n";
  return text;
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::cerr << overview();
    return static_cast<int>(ExitCode::kUsage);
  }
  const std::string& first = words.front();
  if (first == "--help" || first == "-h" || (first == "help" && words.size() == 1)) {
    std::cout << overview();
    return 0;
  }
  if (first == "--version") {
    std::cout << "stretto " << kVersion << "\n";
    return 0;
  }
  if (first == "help") return run_command(find_command(words[1]), {"--help"});
  if (first.starts_with("-")) {
    throw Error(ExitCode::kUsage, "unknown option `" + first + "`",
                "`stretto --help` lists the commands");
  }
  return run_command(find_command(first), {words.begin() + 1, words.end()});
}

// The first line says what is wrong; below it some libraries print a stack.
std::string first_line(const std::string& text) {
  const char* trace = std::getenv("STRETTO_TRACE");
  if (trace != nullptr && std::string(trace) == "1") return text;
  return text.substr(0, text.find('\n'));
}

// For a command that needs no tensors; the engine has advice of its own (engine/engine_entry.h).
constexpr const char* kOutOfMemory =
    "out of memory\n  stop what else takes the memory of this machine, or give it less at a "
    "time";

// A process of a job says how it ends, to the launcher that started it and to the other processes.
int fail(const distributed::Failure& failure) {
  end_named_pipes();
  distributed::report_failure(failure);
  return distributed::leave(failure.exit_code, failure.message);
}

int fail(ExitCode code, const std::string& message) {
  return fail({.exit_code = static_cast<int>(code), .message = message, .lost_rank = {}});
}

int run(int argc, char** argv) {
  try {
    // First of all: the launcher of a job must know of this process before anything can end it.
    distributed::report_start();
    const int code = dispatch({argv + 1, argv + argc});
    if (code != 0) end_named_pipes();
    flush_stdout();
    failpoint("command.end");
    distributed::report_end(code, "");
    return distributed::leave(code);
  } catch (const Error& error) {
    return fail(distributed::failure_of(error));
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kOutOfMemory, kOutOfMemory);
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(ExitCode::kIo, std::string(error.what()) +
                                   "\n  look at this path, who may read and write it, and what "
                                   "room is left");
  } catch (const std::exception& error) {
    return fail(ExitCode::kInternal,
                first_line(error.what()) +
                    "\n  nobody foresaw this: it is a bug in Stretto. Report it with the command, "
                    "what `stretto doctor` prints, and what this prints with STRETTO_TRACE=1");
  }
}

// Whoever waits for the end need not wait until libtorch has taken itself apart, or until it is
// loaded: the system frees all of it at once.
int end_at_once(int code) {
  if (!is_engine_begun()) return code;
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

}  // namespace stretto::cli

int main(int argc, char** argv) {
  return stretto::cli::end_at_once(stretto::cli::run(argc, argv));
}
