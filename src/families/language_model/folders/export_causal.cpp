#include "families/language_model/folders/export_causal.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "interchange/folder_tensors.h"
#include "interchange/new_folder.h"
#include "interchange/special_tokens.h"
#include "interchange/tensors.h"
#include "interchange/tokenizer_folder.h"
#include "text/tokenizer.h"

namespace stretto::interchange {
namespace {

/// What `generate` begins and ends with. @param ends  beside specials.eos
std::string causal_generation(const text::SpecialIds& specials, const std::vector<int64_t>& ends) {
  auto config = nlohmann::ordered_json::object();
  const auto add = [&](const char* key, int64_t id) {
    if (id >= 0) config[key] = id;
  };
  add("bos_token_id", specials.bos);
  add("eos_token_id", specials.eos);
  if (!ends.empty() && specials.eos >= 0) {
    config["eos_token_id"] = nlohmann::ordered_json::array({specials.eos});
    for (const int64_t end : ends) config["eos_token_id"].push_back(end);
  }
  add("pad_token_id", specials.pad);
  return config.dump(2) + "\n";
}

}  // namespace

void export_causal(const ExportedCausal& model, const std::filesystem::path& folder) {
  const CausalDescription& description = model.description;
  const auto names = causal_names(description);
  require_all_written(model.tensors, names);
  const auto tensors = without_spare_rows(model.tensors, description.vocab_size, &is_causal_table);
  const auto theirs = separated(tensors, names, 0, "the checkpoint");
  const auto specials = text::make_spec_tokenizer(model.tokenizer, "tokenizer", 0)->specials();
  const auto tokenizer =
      tokenizer_files(model.tokenizer, description.model.max_positions, /*num_segments=*/0);
  std::vector<int64_t> ends;
  for (const auto& token : model.end_tokens) {
    if (const auto id = id_of_token(model.tokenizer, token)) ends.push_back(*id);
  }
  NewFolder target(folder);
  store::stream_safetensors(target.path() / "model.safetensors", theirs, {{"format", "pt"}});
  for (const auto& [name, bytes] : tokenizer) write_file_atomic(target.path() / name, bytes);
  write_file_atomic(target.path() / "generation_config.json", causal_generation(specials, ends));
  write_file_atomic(target.path() / "config.json", write_causal_config(description, specials));
  target.publish();
}

}  // namespace stretto::interchange
