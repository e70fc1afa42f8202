// What must be durable, done by a program of its own, so that its calls can be recorded from
// outside:
//
//     durability_tool atomic FILE TEXT      replaces FILE
//     durability_tool checkpoints RUN N     saves steps 1 to N, and prunes all but the last two
//     durability_tool journal FILE N        a search's journal of N lines
//     durability_tool folder PLACE          a folder with one file, as export makes it
//     durability_tool corpus FOLDER         a token cache of FOLDER/a and FOLDER/b in FOLDER/cache
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/pairs/corpus.h"
#include "interchange/new_folder.h"
#include "search/journal.h"
#include "store/checkpoint.h"

namespace {

using namespace stretto;

void save_steps(const std::string& run, int64_t count) {
  store::CheckpointStore store(run);
  std::vector<float> weights(64, 1.0F);
  for (int64_t step = 1; step <= count; ++step) {
    const std::string_view bytes(reinterpret_cast<const char*>(weights.data()), 256);
    const store::TensorView tensor{"w", store::DType::kF32, {64}, bytes};
    store.save({.step = step,
                .run_id = "run",
                .config_hash = "hash",
                .provenance = {},
                .files = {{"model", {tensor}}, {"optimizer", {tensor}}},
                .state_json = "{}"});
    store.prune({step - 1, step});
  }
}

void write_journal(const std::string& file, int64_t lines) {
  search::Journal journal(file);
  for (int64_t i = 0; i < lines; ++i) journal.append({{"event", "result"}, {"trial", i}});
}

void make_folder(const std::string& place) {
  interchange::NewFolder folder(place);
  write_file_atomic(folder.path() / "config.json", "{}");
  folder.publish();
}

void make_corpus(const std::string& folder) {
  data::DataOptions options;
  options.train_src = {folder + "/a"};
  options.train_tgt = {folder + "/b"};
  options.cache_dir = folder + "/cache";
  options.max_src_tokens = options.max_tgt_tokens = options.max_tokens = 64;
  text::TokenizerPair tokenizers;
  tokenizers.src = tokenizers.tgt = text::make_vocabulary("x\ny\n", "words");
  data::open_corpus(options, data::Split::kTrain, tokenizers, 1, 1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "atomic") {
      write_file_atomic(words[1], words[2]);
    } else if (words.size() == 3 && words[0] == "checkpoints") {
      save_steps(words[1], std::stoll(words[2]));
    } else if (words.size() == 3 && words[0] == "journal") {
      write_journal(words[1], std::stoll(words[2]));
    } else if (words.size() == 2 && words[0] == "folder") {
      make_folder(words[1]);
    } else if (words.size() == 2 && words[0] == "corpus") {
      make_corpus(words[1]);
    } else {
      std::cerr << "usage: see the source\n";
      return 2;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
