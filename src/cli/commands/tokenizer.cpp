#include "text/tokenizer.h"

#include <charconv>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "base/named_output.h"
#include "base/stdout.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/run_config.h"
#include "experiment/task_rules.h"
#include "text/tokenizer_files.h"
#include "text/train_tokenizer.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct TokenizerTrainOptions {
  std::string type = "sentencepiece";
  bool cased = false;
  text::SentencePieceTraining training;
  text::TrainingSample sample;
  std::vector<std::string> files;
  std::string output;
};

/// The lines of one FILE.
class FileLines final : public text::LineSource {
 public:
  explicit FileLines(const std::string& path) : reader_(open_lines(path)) {}
  bool next(std::string& line) override {
    std::string_view view;
    if (!reader_.next(view)) return false;
    line.assign(view);
    return true;
  }

 private:
  data::LineReader reader_;
};

std::string train_model(const std::vector<std::string>& lines,
                        const TokenizerTrainOptions& options) {
  if (options.type == "sentencepiece") return text::train_sentencepiece(lines, options.training);
  using Model = text::TokenizerSpec::Model;
  return text::write_tokenizer_json(text::train_tokenizer(
      lines, {.model = options.type == "byte_bpe" ? Model::kByteBpe : Model::kWordPiece,
              .vocab_size = options.training.vocab_size,
              .lowercase = !options.cased}));
}

int train(const TokenizerTrainOptions& options) {
  require_output_place(options.output, "--output");
  std::vector<std::string> lines;
  uint64_t number = 0;
  for (const auto& path : options.files) {
    FileLines file(path);
    text::sample_lines(file, ++number, options.sample, lines);
  }
  if (lines.empty()) {
    throw Error(ExitCode::kBadData, "no text to train a tokenizer on", "the files have no lines");
  }
  const std::string model = train_model(lines, options);
  write_named_output(options.output, model);
  const auto tokenizer = text::make_model_tokenizer(model, options.output);
  std::cout << shown_on_stdout(options.output) << ": " << counted(tokenizer->size(), "piece")
            << " from " << counted(static_cast<int64_t>(lines.size()), "line") << "\n";
  return 0;
}

struct CodeOptions {
  std::string tokenizer, merges;
  bool target = false, ids = false, offsets = false, specials = false;
};

text::TokenizerOptions tokenizer_of_run(const experiment::Experiment& e, const std::string& run) {
  const auto* task = experiment::find_task_rules(e);
  const auto options = task != nullptr ? task->tokenizer_options(e) : std::nullopt;
  if (options) return *options;
  throw Error(ExitCode::kUsage, run + " is a run of " + e.task.name() + ", which has no tokenizer",
              "name a run of another task, or the file of a tokenizer");
}

// The tokenizer of a run folder, of a model in one of its formats, or of a vocabulary file.
std::shared_ptr<const text::Tokenizer> open_tokenizer(const CodeOptions& options) {
  const std::string& path = options.tokenizer;
  if (fs::is_directory(path)) {
    const auto loaded = load_run_config(path, {});
    std::map<std::string, std::string> assets;
    const fs::path folder = fs::path(path) / "tokenizer";
    if (!fs::is_directory(folder)) {
      throw Error(ExitCode::kUsage, path + " has no tokenizer folder", "train the run first");
    }
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with('.')) assets[name] = read_file(entry.path());
    }
    const auto pair = text::load_tokenizers(tokenizer_of_run(loaded.options, path), assets);
    return options.target ? pair.tgt : pair.src;
  }
  const std::string bytes = read_file(path);
  if (text::kind_of_file(bytes, path) == text::TokenizerFile::kVocabulary) {
    return text::make_vocabulary(bytes, path);
  }
  return text::make_model_tokenizer(text::model_bytes(bytes, path, {.merges = options.merges}),
                                    path);
}

int64_t id_of(const text::Tokenizer& tokenizer, const std::string& word,
              const data::LineReader& reader) {
  int64_t id = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || end != word.data() + word.size() || id < 0 ||
      id >= tokenizer.size()) {
    throw Error(ExitCode::kBadData,
                reader.name() + ":" + std::to_string(reader.line_number()) + ": `" +
                    printable(word) + "` is not an id below " + std::to_string(tokenizer.size()),
                "ids are what `stretto tokenizer encode --ids` prints");
  }
  return id;
}

// One line of output: pieces, ids or offsets of a line's tokens, with the template's specials
// around them.
class TokenPrinter {
 public:
  TokenPrinter(const text::Tokenizer& tokenizer, const CodeOptions& options)
      : tokenizer_(tokenizer), options_(options), slots_(tokenizer.sequences().single) {
    if (!options.specials) slots_ = text::SequenceTemplate().single;
  }

  std::string print(std::string_view line) {
    ids_.clear();
    spans_.clear();
    if (options_.offsets) {
      tokenizer_.encode_with_spans(line, ids_, spans_);
    } else {
      tokenizer_.encode(line, ids_);
    }
    out_.clear();
    for (const auto& slot : slots_) {
      if (slot.part == text::SequenceTemplate::Part::kSpecial) {
        add(slot.id, {});
      } else {
        for (size_t i = 0; i < ids_.size(); ++i) {
          add(ids_[i], options_.offsets ? spans_[i] : text::CodePointSpan());
        }
      }
    }
    return out_;
  }

 private:
  void add(int64_t id, text::CodePointSpan span) {
    if (!out_.empty()) out_ += ' ';
    if (options_.ids) out_ += std::to_string(id);
    if (options_.offsets) {
      if (options_.ids) out_ += ':';
      out_ += std::to_string(span.begin) + ":" + std::to_string(span.end);
    } else if (!options_.ids) {
      out_ += tokenizer_.piece(id);
    }
  }

  const text::Tokenizer& tokenizer_;
  const CodeOptions& options_;
  std::vector<text::SequenceTemplate::Slot> slots_;
  std::vector<int64_t> ids_;
  std::vector<text::CodePointSpan> spans_;
  std::string out_;
};

int encode(const CodeOptions& options) {
  const auto tokenizer = open_tokenizer(options);
  TokenPrinter printer(*tokenizer, options);
  auto reader = open_lines("-");
  std::string_view line;
  while (reader.next(line)) std::cout << shown_on_stdout(printer.print(line)) << "\n";
  return 0;
}

int decode(const CodeOptions& options) {
  const auto tokenizer = open_tokenizer(options);
  const int64_t unknown = tokenizer->specials().unk;
  std::map<std::string, int64_t> pieces;
  for (int64_t id = 0; !options.ids && id < tokenizer->size(); ++id) {
    pieces.emplace(tokenizer->piece(id), id);
  }
  auto reader = open_lines("-");
  std::string_view line;
  std::vector<int64_t> ids;
  while (reader.next(line)) {
    ids.clear();
    for (const auto& word : split(line, ' ')) {
      if (word.empty()) continue;
      if (options.ids) {
        ids.push_back(id_of(*tokenizer, word, reader));
      } else {
        const auto found = pieces.find(word);
        ids.push_back(found == pieces.end() ? unknown : found->second);
      }
    }
    std::cout << shown_on_stdout(tokenizer->decode(ids)) << "\n";
  }
  return 0;
}

using Action = std::shared_ptr<std::function<int()>>;

void declare_train_part(CLI::App& app, const Action& action) {
  auto options = std::make_shared<TokenizerTrainOptions>();
  auto* part = app.add_subcommand("train", "train a model on text");
  part->add_option("FILE", options->files, "text: plain, .gz, .zst, FILE.zip:MEMBER, - for stdin")
      ->required()
      ->type_name("");
  part->add_option("--output", options->output, "where the model goes")
      ->required()
      ->type_name("FILE");
  part->add_option("--type", options->type,
                   "sentencepiece (default), a .model; wordpiece or byte_bpe, a tokenizer.json")
      ->check(one_of({"sentencepiece", "wordpiece", "byte_bpe"}))
      ->type_name("NAME");
  part->add_flag("--cased", options->cased, "of wordpiece: keeps capitals and accents");
  part->add_option("--vocab-size", options->training.vocab_size, "number of pieces; default 8000")
      ->check(whole_number(16, 1000000))
      ->type_name("N");
  part->add_option("--algorithm", options->training.algorithm,
                   "of sentencepiece: bpe or unigram; default bpe")
      ->check(one_of({"bpe", "unigram"}))
      ->type_name("NAME");
  part->add_option("--character-coverage", options->training.character_coverage,
                   "of sentencepiece: share of characters that get a piece; default 1")
      ->check(number_between(0.98, 1))
      ->type_name("X");
  part->add_option("--max-lines", options->sample.max_lines,
                   "lines of each FILE, drawn at random; default 2000000")
      ->check(whole_number(1, INT64_MAX))
      ->type_name("N");
  part->add_option("--seed", options->sample.seed, "of that draw; default 1")
      ->check(whole_number(0, INT64_MAX))
      ->type_name("N");
  part->callback([options, action] { *action = [options] { return train(*options); }; });
}

void declare_code_part(CLI::App& app, const Action& action, bool encodes) {
  auto options = std::make_shared<CodeOptions>();
  auto* part = encodes ? app.add_subcommand("encode", "text from stdin to pieces on stdout")
                       : app.add_subcommand("decode", "pieces from stdin to text on stdout");
  part->add_option("TOKENIZER", options->tokenizer,
                   "run folder, SentencePiece .model, tokenizer.json, BERT's vocab.txt, GPT-2's "
                   "vocab.json, or vocabulary file")
      ->required()
      ->type_name("");
  part->add_option("--merges", options->merges, "of a vocab.json; default: merges.txt beside it")
      ->type_name("FILE");
  part->add_flag("--target", options->target, "of a run folder: the target side's");
  part->add_flag("--ids", options->ids, "numbers instead of pieces");
  if (encodes) {
    part->add_flag("--offsets", options->offsets,
                   "begin:end of each piece instead, in code points of the line; with --ids "
                   "id:begin:end");
    part->add_flag("--specials", options->specials,
                   "with what the tokenizer puts around a text, such as [CLS] and [SEP]");
  }
  part->callback([options, action, encodes] {
    *action = [options, encodes] { return encodes ? encode(*options) : decode(*options); };
  });
}

}  // namespace

std::function<int()> declare_tokenizer(CLI::App& app) {
  auto action = std::make_shared<std::function<int()>>();
  declare_train_part(app, action);
  declare_code_part(app, action, true);
  declare_code_part(app, action, false);
  for (auto* part : app.get_subcommands({})) part->allow_extras();
  app.require_subcommand(1);
  return [action] { return (*action)(); };
}

}  // namespace stretto::cli
